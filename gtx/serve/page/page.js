"use strict";
const STEP = 100; // rows that are shown at a time
const METHODS = { substructures: "Substructures", shapley: "Atoms", attention: "Attention" };
const find = (id) => document.getElementById(id);
let model = null, answer = null, shown = 0, name = "predictions";

/* Everything from outside becomes text by textContent, never HTML. */
function make(tag, options = {}, ...children) {
  const { data = {}, ...own } = options, node = Object.assign(document.createElement(tag), own);
  Object.assign(node.dataset, data);
  node.append(...children);
  return node;
}

async function ask(path, type, body) {
  const options = body === undefined ? {} : { method: "POST", body, headers: { "Content-Type": type, Accept: "application/json" } };
  let response;
  try { response = await fetch(path, options); } catch { throw new Error("the service does not answer; has it ended?"); }
  const found = await response.json().catch(() => ({ error: `status ${response.status}` }));
  if (!response.ok) throw Object.assign(new Error(found.error), { atoms: found.atoms });
  return found;
}

function say(text, wrong = false) {
  find("state").hidden = false;
  find("said").textContent = text;
  find("said").className = wrong ? "wrong" : "";
}

function number(text) {
  const value = Number(text);
  return Number.isFinite(value) ? String(Number(value.toPrecision(4))).replace("-", "−") : text;
}

/* The columns of answers by target: a number, its spread and its interval stand together, all others alone. */
function groups() {
  const found = new Map(), place = (name) => answer.columns.indexOf(name);
  for (const { name, number } of answer.answers) {
    const parts = number && /^(.*)_(std|low|high)(\d*)$/.exec(name);
    const home = parts && found.get(`${parts[1]}_pred${parts[3]}`);
    if (home && home.number) home[parts[2]] = place(name);
    else {
      const target = name.replace(/_pred(\d*)$/, "$1"), unit = number && model && model.units[target];
      found.set(name, { name: unit ? `${target}, ${unit}` : target, number, pred: place(name) });
    }
  }
  for (const group of found.values()) {
    const ends = answer.rows.flatMap((row) => [group.pred, group.low, group.high].filter((i) => i !== undefined && row[i] !== "").map((i) => Number(row[i])));
    const finite = ends.filter(Number.isFinite);
    group.from = finite.reduce((a, b) => Math.min(a, b), Infinity);
    group.to = finite.reduce((a, b) => Math.max(a, b), -Infinity);
  }
  return [...found.values()];
}

function valueCell(row, group) {
  const cell = make("td", { className: "value", data: { name: group.name } }), text = row[group.pred];
  if (text === "") return cell;
  const sure = row.at(-1) ? "" : " sure"; // what training has not shown is not said in bold
  cell.append(make("span", { className: (group.number ? "number" : "answer") + sure, textContent: group.number ? number(text) : text }));
  if (group.std !== undefined) cell.append(make("span", { className: "between", textContent: ` ± ${number(row[group.std])}` }));
  if (group.low !== undefined && row[group.low] !== "") {
    const place = (i) => (100 * (Number(row[i]) - group.from)) / (group.to - group.from || 1);
    const band = make("i"), mark = make("b");
    band.style.left = `${place(group.low)}%`;
    band.style.width = `${place(group.high) - place(group.low)}%`;
    mark.style.left = `${place(group.pred)}%`;
    cell.append(make("div", { className: "track" }, band, mark));
    cell.append(make("div", { className: "between", textContent: `${number(row[group.low])} to ${number(row[group.high])}` }));
  }
  return cell;
}

/* What is wrong or odd, without the place, which is this row. */
const plainly = (text) => text.replace(/(^|; )row \d+, column ".*?", value ".*?": /g, "$1");

function remarks(row) {
  const [error, warning] = row.slice(-2).map(plainly);
  const line = (kind, text) => make("div", { className: `remark ${kind}` }, make("b", { textContent: kind === "error" ? "Error: " : "Note: " }), text);
  return [error && line("error", error), warning && line("warning", warning)].filter(Boolean);
}

function rowOf(row, shownGroups) {
  const cell = (name) => row[answer.columns.indexOf(name)];
  const smiles = (model.components.length ? model.components : [answer.smiles_column])
    .map((name) => name.split(">>").map(cell).join(">>")); // sides of a reaction in two columns
  const others = answer.columns.slice(0, answer.columns.indexOf(answer.answers[0].name))
    .map((column, i) => [column, row[i]]).filter(([column, cell]) => column !== answer.smiles_column && cell !== "")
    .map(([column, cell]) => `${column}: ${cell}`).join(" · ");
  const picture = make("td", { className: "picture" });
  const source = `/draw?${new URLSearchParams(smiles.map((one) => ["smiles", one]))}`;
  if (!row.at(-2)) picture.append(make("img", { className: model.reaction || smiles.length > 1 ? "drawn sides" : "drawn", loading: "lazy", alt: "", src: source }));
  const look = make("button", { type: "button", textContent: "Look inside" }), line = make("tr");
  look.setAttribute("aria-expanded", "false");
  look.addEventListener("click", () => toggle(line, look, row, smiles));
  line.append(
    picture,
    make("td", { className: "molecule" }, make("code", { textContent: smiles[0], title: smiles[0] }), make("div", { className: "cells", textContent: others }), ...remarks(row),
      make("div", { className: "look" }, ...(row.at(-2) || !model.explained.length ? [] : [look]))),
    ...shownGroups.map((group) => valueCell(row, group)),
  );
  return line;
}

/* Where the model looks: gtx explain's picture of one row, when it is asked for. */
function toggle(line, look, row, smiles) {
  const open = look.getAttribute("aria-expanded") === "true";
  look.setAttribute("aria-expanded", String(!open));
  look.textContent = open ? "Look inside" : "Close";
  if (open) return void line.nextSibling.remove();
  const choice = (label, pairs) => {
    const select = make("select", { ariaLabel: label });
    for (const [value, textContent] of pairs) select.append(make("option", { value, textContent }));
    return select;
  };
  const method = choice("What is shown", model.methods.map((one) => [one, METHODS[one] || one]));
  const target = choice("Target", model.explained.map((one) => [one, one])), place = make("div", { className: "picture" });
  const said = make("div", { role: "status" });
  target.hidden = model.explained.length < 2;
  const show = async () => {
    said.className = "soft";
    said.textContent = method.value === "substructures" ? "Working …" : "Working; a large molecule takes a while …";
    place.replaceChildren();
    const asked = { smiles: smiles.length > 1 ? smiles : smiles[0], method: method.value, target: target.value };
    if (model.features.length) asked.features = Object.fromEntries(model.features.map((one) => [one, row[answer.columns.indexOf(one)]]));
    const wanted = JSON.stringify(asked);
    place.dataset.asked = wanted;
    try {
      const found = await ask("/explain", "application/json", wanted);
      if (place.dataset.asked !== wanted) return;
      const source = URL.createObjectURL(new Blob([found.svg], { type: "image/svg+xml" }));
      const image = make("img", { src: source, alt: "Picture of what the model computes for this molecule", className: method.value === "attention" ? "wide" : "" });
      image.addEventListener("load", () => URL.revokeObjectURL(source));
      const told = plainly(row.at(-1)).split("; "); // which stands in the row already
      const text = found.text.split("\n").filter((line) => !told.includes(line.replace(/^note: /, ""))).join("\n");
      place.append(image, make("pre", { textContent: text }));
      said.textContent = "";
    } catch (error) {
      if (place.dataset.asked !== wanted) return;
      said.className = "wrong";
      said.textContent = error.message;
    }
  };
  method.addEventListener("change", show);
  target.addEventListener("change", show);
  const cell = make("td", { colSpan: line.children.length }, make("section", {}, make("div", { className: "actions" }, method, target), said, place));
  line.after(make("tr", { className: "detail" }, cell));
  show();
}

function showMore() {
  const columns = groups(), next = answer.rows.slice(shown, shown + STEP);
  find("table").tBodies[0].append(...next.map((row) => rowOf(row, columns)));
  shown += next.length;
  find("more").hidden = shown >= answer.rows.length;
  find("more").textContent = `Show more (${answer.rows.length - shown} left)`;
}

function showAnswer() {
  const heads = ["", model.reaction ? "Reaction" : "Molecule", ...groups().map((group) => group.name)];
  find("table").tHead.replaceChildren(make("tr", {}, ...heads.map((textContent) => make("th", { textContent }))));
  find("table").tBodies[0].replaceChildren();
  find("table").hidden = find("download").hidden = answer.rows.length === 0;
  shown = 0;
  showMore();
}

async function predict(text) {
  find("predict").disabled = true;
  find("table").hidden = find("more").hidden = find("download").hidden = true;
  say("Predicting …");
  try {
    answer = await ask("/table", "text/csv", text);
    say(answer.summary);
    showAnswer();
  } catch (error) {
    say(error.message, true);
  }
  find("predict").disabled = false;
}

async function open(file) {
  if (!file) return;
  if (model && file.size > model.limits.max_body) return say(`${file.name} has ${file.size} bytes; the limit is ${model.limits.max_body}. gtx predict has no limit.`, true);
  name = file.name.replace(/\.[^.]*$/, "") + "-predictions";
  const content = await file.arrayBuffer();
  find("text").value = new TextDecoder().decode(content);
  predict(content);
}

/* As Python's csv module quotes, so that the file is the one that gtx predict writes. */
function csv() {
  const line = (cells) => {
    const all = cells.some((cell) => cell.includes("\r"));
    return cells.map((cell) => quoted(cell, all)).join(",") + "\n";
  };
  return [answer.columns, ...answer.rows].map(line).join("");
}

find("ask").addEventListener("submit", (event) => { event.preventDefault(); name = "predictions"; predict(find("text").value); });
find("text").addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) find("ask").requestSubmit(); });
/* What is selected is changed; otherwise the drawing becomes a new line. */
find("sketch").addEventListener("click", () => {
  const box = find("text"), from = box.selectionStart, to = box.selectionEnd, selected = box.value.slice(from, to);
  openEditor(selected.trim(), (smiles) => {
    if (selected.trim()) box.setRangeText(selected.replace(selected.trim(), () => smiles), from, to, "select");
    else box.value = withLine(box.value, smiles, model ? model.reads : []);
    box.focus();
  });
});
find("choose").addEventListener("click", () => find("file").click());
find("file").addEventListener("change", (event) => { open(event.target.files[0]); event.target.value = ""; });
find("example").addEventListener("click", () => { find("text").value = model ? model.example : ""; find("ask").requestSubmit(); });
find("more").addEventListener("click", showMore);
find("download").addEventListener("click", () => {
  const source = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  make("a", { href: source, download: `${name}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(source), 1000);
});
for (const kind of ["dragenter", "dragover"]) addEventListener(kind, (event) => { event.preventDefault(); find("ask").classList.add("over"); });
addEventListener("dragleave", (event) => { if (!event.relatedTarget) find("ask").classList.remove("over"); });
addEventListener("drop", (event) => { event.preventDefault(); find("ask").classList.remove("over"); open(event.dataTransfer.files[0]); });

makeEditor();
ask("/model").then((found) => {
  model = found;
  const targets = found.targets.map((name) => name + (found.units[name] ? ` (${found.units[name]})` : "")).join(", ");
  document.title = `${targets} · gtx`;
  find("title").textContent = `Predict ${targets}`;
  find("model").textContent = `gtx ${found.gtx} · ${found.name}`;
  const most = found.limits.max_molecules.toLocaleString("en");
  find("about").textContent = `Task: ${found.task}. ${found.members > 1 ? `The mean of ${found.members} networks. ` : ""}The model reads ${found.reads.join(", ")}; up to ${most} rows at once.`;
  find("notes").textContent = found.notes.length ? `Notes from training: ${found.notes.join("; ")}.` : "";
  find("text").placeholder = found.example;
  find("sketch").hidden = found.reaction;
  if (found.reaction) find("label").textContent = "Reactions";
  if (found.reaction) find("hint").textContent = "This model reads reactions, which are typed or pasted and not drawn: one reactants>>products a line, or a table with a header. A file may be dropped here.";
}).catch((error) => say(error.message, true));
