"use strict";
// Two comforts; without them the page says the same. Pictures: the structure of a molecule under the pointer. Tables: a
// click on a heading sorts.
(() => {
  const NS = "http://www.w3.org/2000/svg", BOND = 22;
  const molecules = JSON.parse(document.getElementById("molecules")?.textContent || "{}");
  const tip = document.body.appendChild(document.createElement("div"));
  tip.className = "tip";
  tip.hidden = true;

  function element(parent, name, attributes, text) {
    const made = parent.appendChild(document.createElementNS(NS, name));
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    return made;
  }

  function picture({atoms, bonds}) {
    const at = atoms.map(([, x, y]) => [x / 10 * BOND, y / 10 * BOND]);
    const [left, top] = [0, 1].map((k) => Math.min(...at.map((place) => place[k])) - 18);
    const [right, bottom] = [0, 1].map((k) => Math.max(...at.map((place) => place[k])) + 18);
    const svg = document.createElementNS(NS, "svg");
    svg.setAttribute("viewBox", [left, top, right - left, bottom - top].join(" "));
    svg.setAttribute("width", Math.min(right - left, 260));
    svg.setAttribute("height", Math.min(bottom - top, 200));
    for (const [begin, end, kind] of bonds) {
      const [[x, y], [u, v]] = [at[begin], at[end]];
      const length = Math.hypot(u - x, v - y) || 1, [nx, ny] = [(y - v) / length, (u - x) / length];
      if (kind === "up") {
        element(svg, "path", {d: `M${x} ${y}L${u + 3 * nx} ${v + 3 * ny}L${u - 3 * nx} ${v - 3 * ny}Z`, fill: "currentColor"});
        continue;
      }
      const offsets = {double: [-1.8, 1.8], triple: [-3, 0, 3]}[kind] || [0];
      for (const by of offsets)
        element(svg, "line", {x1: x + by * nx, y1: y + by * ny, x2: u + by * nx, y2: v + by * ny,
          ...(kind === "down" ? {"stroke-dasharray": "1.5 2", "stroke-width": 4} : {})});
    }
    atoms.forEach(([label], i) => {
      if (label) element(svg, "text", {x: at[i][0], y: at[i][1] + 4.5, "text-anchor": "middle"}, label);
    });
    return svg;
  }

  document.addEventListener("pointerover", (event) => {
    const over = event.target.closest("[data-molecule]");
    tip.hidden = !over;
    if (!over) return;
    const [row, target] = over.dataset.molecule.split("."), molecule = molecules[row];
    if (!molecule) return void (tip.hidden = true);
    const words = document.createElement("p");
    words.textContent = `row ${molecule.row}: ${molecule.said[target]}`;
    const text = document.createElement("code");
    text.textContent = molecule.smiles;
    tip.replaceChildren(...(molecule.atoms.length ? [picture(molecule)] : []), words, text);
    const box = over.getBoundingClientRect(), {offsetWidth: width, offsetHeight: height} = tip;
    const x = Math.min(event.clientX + 14, innerWidth - width - 8);
    const y = box.bottom + height + 10 < innerHeight ? box.bottom + 8 : box.top - height - 8;
    tip.style.left = `${Math.max(8, x) + scrollX}px`;
    tip.style.top = `${y + scrollY}px`;
  });

  const value = (row, k) => {
    const text = row.cells[k].textContent.trim(), number = Number(text.replace("−", "-").replaceAll(",", ""));
    return text === "–" ? null : Number.isNaN(number) ? text : number;
  };
  const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  for (const table of document.querySelectorAll("table.sortable"))
    [...table.tHead.rows[0].cells].forEach((head, k) => {
      const button = document.createElement("button");
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending", body = table.tBodies[0];
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...body.rows].map((row) => [value(row, k), row]);
        rows.sort(([a], [b]) => (a === null) - (b === null) || (a === null ? 0 : up ? compare(a, b) : compare(b, a)));
        body.append(...rows.map(([, row]) => row));
      });
    });
})();
