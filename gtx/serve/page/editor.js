"use strict";
/* The editor: draws what drawing.js computes, and turns what a pointer and keys do into calls of it. The service says
   what is drawn: its SMILES, the hydrogen atoms to show, and which atoms cannot be. */
const BOND = 40; // pixels
const LINE = 0.16; // between the lines of a double bond, in bonds
const MOVED = 0.25; // a pointer that went less far has clicked
const GROUPS = [
  ["Atoms", [
    ["C", "Carbon", "c"], ["N", "Nitrogen", "n"], ["O", "Oxygen", "o"], ["S", "Sulphur", "s"], ["P", "Phosphorus", "p"],
    ["F", "Fluorine", "f"], ["Cl", "Chlorine", "l"], ["Br", "Bromine", "b"], ["I", "Iodine", "i"],
  ].map(([element, name, key]) => ({ element, name, key, text: element }))],
  ["Bonds", [
    { bond: "single", name: "Single bond", key: "1", path: "M5 19 19 5" },
    { bond: "double", name: "Double bond", key: "2", path: "M4 17 17 4 M7 20 20 7" },
    { bond: "triple", name: "Triple bond", key: "3", path: "M3 16 16 3 M5.5 18.5 18.5 5.5 M8 21 21 8" },
    { bond: "up", name: "Wedge, towards you", path: "M5 19 16.5 4.5 19.5 7.5Z", filled: true },
    { bond: "down", name: "Wedge, away from you", path: "M6 17 7 18 M8.4 13.9 10.1 15.6 M10.8 10.8 13.2 13.2 M13.2 7.7 16.3 10.8 M15.6 4.6 19.4 8.4" },
  ]],
  ["Rings", [
    { ring: 6, aromatic: true, name: "Benzene", path: "M12 3 19.8 7.5V16.5L12 21 4.2 16.5V7.5Z M12 6.5 16.8 9.2 M16.8 14.8 12 17.5 M7.2 14.8V9.2" },
    { ring: 6, name: "Six-membered ring", path: "M12 3 19.8 7.5V16.5L12 21 4.2 16.5V7.5Z" },
    { ring: 5, name: "Five-membered ring", path: "M12 4 20 9.8 17 19.2H7L4 9.8Z" },
    { ring: 3, name: "Three-membered ring", path: "M12 5 19.5 18H4.5Z" },
    { ring: 4, name: "Four-membered ring", path: "M5.5 5.5H18.5V18.5H5.5Z" },
    { ring: 7, name: "Seven-membered ring", path: "M12 3.5 18.6 6.7 20.3 13.9 15.7 19.7H8.3L3.7 13.9 5.4 6.7Z" },
  ]],
  ["Charges and erasing", [
    { charge: 1, name: "Charge +", key: "+", text: "+" },
    { charge: -1, name: "Charge −", key: "-", text: "−" },
    { erase: true, name: "Erase", key: "e", path: "M9.5 19 4.5 14 13.5 5 19.5 11 11.5 19Z M9 9.5 15 15.5 M9.5 19H20" },
  ]],
];
const ARROWS = { ArrowRight: 0, ArrowUp: Math.PI / 2, ArrowLeft: Math.PI, ArrowDown: -Math.PI / 2 };

const editor = { drawing: EMPTY, past: [], future: [], tool: null, spot: {}, drag: null, told: {}, asked: Promise.resolve(), use: null };

function shape(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const X = (point) => (point.x * BOND).toFixed(1), Y = (point) => (-point.y * BOND).toFixed(1);
const path = (points, attributes = {}) => shape("path", { class: "bond", d: `M${points.map((p) => `${X(p)} ${Y(p)}`).join("L")}`, ...attributes });

/* A bond as lines, or as a wedge. */
function bondShapes(drawing, bond) {
  const [a, b] = ends(drawing, bond), turned = angle(a, b) + Math.PI / 2;
  const beside = (way, cut = 0) => [towards(towards(a, turned, way), angle(a, b), cut), towards(towards(b, turned, way), angle(b, a), cut)];
  const across = (share, half) => [half, -half].map((way) => towards(towards(a, angle(a, b), share * apart(a, b)), turned, way));
  const side = DOUBLE.includes(bond.kind) ? innerSide(drawing, bond) : 0;
  switch (bond.kind) {
    case "double": return side ? [path([a, b]), path(beside(side * LINE, 0.12))] : [path(beside(LINE / 2)), path(beside(-LINE / 2))];
    case "either": return [path([beside(LINE / 2)[0], beside(-LINE / 2)[1]]), path([beside(-LINE / 2)[0], beside(LINE / 2)[1]])];
    case "triple": return [0, LINE, -LINE].map((way) => path(beside(way, way ? 0.1 : 0)));
    case "up": return [path([a, ...across(1, 0.1), a], { class: "bond wedge" })];
    case "down": return [0.15, 0.32, 0.49, 0.66, 0.83, 1].map((share) => path(across(share, 0.1 * share)));
    default: return [path([a, b])];
  }
}

/* An atom as text, unless it is a carbon within a chain; hydrogen atoms stand where no bond is. */
function labelShape(drawing, i, hydrogens = 0) {
  const atom = drawing.atoms[i], near = partners(drawing, i);
  if (atom.element === "C" && !atom.charge && near.length) return [];
  const left = near.length > 0 && near.every((j) => drawing.atoms[j].x > atom.x - 0.01) && near.some((j) => drawing.atoms[j].x > atom.x + 0.3);
  const size = Math.abs(atom.charge), wide = atom.element.length > 1 ? 10 : 6.5;
  const text = (own, ...parts) => shape("text", { y: Y(atom), dy: "0.36em", "data-element": atom.element, ...own }, ...parts);
  const small = (content, dy) => (content ? [shape("tspan", { class: "small", dy }, content)] : []);
  const h = hydrogens ? ["H", ...small(hydrogens > 1 ? String(hydrogens) : "", "0.35em")] : [];
  const sign = small(size ? `${size > 1 ? size : ""}${atom.charge > 0 ? "+" : "−"}` : "", h.length > 1 && !left ? "-0.95em" : "-0.5em");
  const x = Number(X(atom));
  return [
    text({ x, "text-anchor": "middle" }, atom.element),
    ...(left && h.length ? [text({ x: x - wide, "text-anchor": "end" }, ...h)] : []),
    ...(sign.length || (h.length && !left) ? [text({ x: x + wide }, ...(left ? [] : h), ...sign)] : []),
  ];
}

const ringAround = (point, name) => shape("circle", { class: name, cx: X(point), cy: Y(point), r: 0.36 * BOND });

/* What is marked: the spot that a click or Enter would change, atoms that cannot be, and a bond that is being drawn. */
function marks(drawing) {
  const { spot, drag, told } = editor, wrong = (told.atoms || []).map((i) => ringAround(drawing.atoms[i], "wrong"));
  if (drag && drag.to) return [...wrong, path([drag.from, drag.to], { class: "bond coming" })];
  if (spot.atom !== undefined) return [...wrong, ringAround(drawing.atoms[spot.atom], "spot")];
  return spot.bond === undefined ? wrong : [...wrong, path(ends(drawing, drawing.bonds[spot.bond]), { class: "spot" })];
}

/* The part of the plane that is shown: one bond is 40 pixels long, unless the drawing needs more room. */
function viewBox(drawing, width, height) {
  const xs = drawing.atoms.map((atom) => atom.x * BOND), ys = drawing.atoms.map((atom) => -atom.y * BOND), margin = 1.2 * BOND;
  const span = (list, least) => {
    const low = Math.min(-least / 2, ...list.map((one) => one - margin)), high = Math.max(least / 2, ...list.map((one) => one + margin));
    return [low, high - low];
  };
  const [left, wide] = span(xs, width), [top, high] = span(ys, height);
  return `${left.toFixed(1)} ${top.toFixed(1)} ${wide.toFixed(1)} ${high.toFixed(1)}`;
}

function show() {
  const { drawing, told, drag } = editor, board = find("board");
  if (!drag) board.setAttribute("viewBox", viewBox(drawing, board.clientWidth || 1, board.clientHeight || 1));
  const bonds = drawing.bonds.flatMap((bond) => bondShapes(drawing, bond));
  const labels = drawing.atoms.flatMap((_, i) => labelShape(drawing, i, told.hydrogens?.[i]));
  const halos = shape("g", { class: "halo" }, ...labels.map((label) => label.cloneNode(true))); // bonds end at letters
  const empty = drawing.atoms.length ? [] : [shape("text", { class: "hint", "text-anchor": "middle" }, "Choose a tool, then click here")];
  board.replaceChildren(...marks(drawing), ...bonds, halos, ...labels, ...empty);
  for (const button of find("tools").querySelectorAll("[aria-pressed]")) button.setAttribute("aria-pressed", String(button.title === editor.tool.name));
  find("undo").disabled = !editor.past.length;
  find("redo").disabled = !editor.future.length;
  find("clear").disabled = !drawing.atoms.length;
  find("editor-add").disabled = !drawing.atoms.length || Boolean(told.error);
}

/* The service reads each drawing; an answer that comes too late is of no use. */
function change(drawing) {
  if (drawing === editor.drawing) return show();
  editor.past.push(editor.drawing);
  editor.future = [];
  take(drawing);
}

function take(drawing) {
  Object.assign(editor, { drawing, spot: {} });
  tell({});
  if (!drawing.atoms.length) return;
  editor.asked = ask("/smiles", "application/json", JSON.stringify(drawing)).catch((error) => ({ error: error.message, atoms: error.atoms }))
    .then((found) => { if (editor.drawing === drawing) tell(found); });
}

function tell(told) {
  editor.told = told;
  find("drawn").value = told.smiles || "";
  find("told").textContent = told.error || "";
  show();
}

/* A SMILES as a drawing; where it cannot be one, the drawing stays. */
async function openSmiles(smiles) {
  try {
    change(await ask(`/sketch?smiles=${encodeURIComponent(smiles)}`));
    await editor.asked;
  } catch (error) {
    find("told").textContent = error.message;
  }
}

function openEditor(smiles, use) {
  editor.use = use;
  find("editor").showModal();
  show();
  find("board").focus();
  if (smiles) editor.asked = openSmiles(smiles);
}

function step(from, to) {
  if (!from.length) return;
  to.push(editor.drawing);
  take(from.pop());
}
const undo = () => step(editor.past, editor.future), redo = () => step(editor.future, editor.past);

function pointed(event) {
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(find("board").getScreenCTM().inverse());
  return { x: point.x / BOND, y: -point.y / BOND };
}

const reach = (event) => (event.pointerType === "touch" ? 0.5 : 0.38);

function pressed(event) {
  if (event.button) return;
  const point = pointed(event), spot = spotAt(editor.drawing, point, reach(event));
  find("board").setPointerCapture(event.pointerId);
  editor.drag = { spot, start: point, from: spot.atom === undefined ? point : editor.drawing.atoms[spot.atom], to: null };
}

function moved(event) {
  const point = pointed(event), { drag, drawing, tool } = editor;
  editor.spot = drag ? {} : spotAt(drawing, point, reach(event));
  if (drag && (tool.element || tool.bond) && drag.spot.bond === undefined) {
    const there = nearest(drawing, point, reach(event));
    drag.to = apart(drag.start, point) < MOVED ? null : there === undefined || there === drag.spot.atom ? snapped(drag.from, point) : drawing.atoms[there];
  }
  show();
}

function released() {
  const { drag, drawing, tool } = editor;
  if (!drag) return;
  editor.drag = null;
  if (!drag.to) return change(applied(drawing, tool, drag.spot, drag.start));
  const started = drag.spot.atom === undefined ? withAtom(drawing, drag.from, tool.element) : drawing;
  change(drawn(started, drag.spot.atom ?? drawing.atoms.length, drag.to, tool.element || "C", tool.bond || "single"));
}

/* Enter on an atom grows a chain from it, and goes to the new atom. */
function useKeys(event) {
  const { drawing, spot, tool } = editor, key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const chosen = GROUPS.flatMap(([, tools]) => tools).find((one) => one.key === key);
  if (event.key === "Escape" && editor.drag) editor.drag = null;
  else if ((event.ctrlKey || event.metaKey) && key === "z") event.shiftKey ? redo() : undo();
  else if ((event.ctrlKey || event.metaKey) && key === "y") redo();
  else if (event.ctrlKey || event.metaKey || event.altKey) return;
  else if (event.key in ARROWS) editor.spot = nextSpot(drawing, spot, ARROWS[event.key]);
  else if (key === "Enter" || key === " ") {
    change(applied(drawing, tool, spot, { x: 0, y: 0 }));
    const made = editor.drawing;
    editor.spot = made.atoms.length > drawing.atoms.length ? { atom: made.atoms.length - 1 } : made.atoms.length === drawing.atoms.length ? spot : {};
  } else if (key === "Delete" || key === "Backspace") change(without(drawing, spot));
  else if (chosen) editor.tool = chosen;
  else return;
  event.preventDefault();
  show();
}

function toolButton(tool, act = () => { editor.tool = tool; show(); }) {
  const icon = tool.path && shape("svg", { viewBox: "0 0 24 24", class: tool.filled ? "filled" : "", "aria-hidden": "true" }, shape("path", { d: tool.path }));
  const button = make("button", { type: "button", title: tool.name, ariaLabel: tool.key ? `${tool.name}, key ${tool.key}` : tool.name }, icon || tool.text);
  if (tool.element) button.dataset.element = tool.element;
  button.addEventListener("click", act);
  return button;
}

function makeEditor() {
  const group = (name, buttons) => find("tools").append(make("div", { className: "group", role: "group", ariaLabel: name }, ...buttons));
  for (const [name, tools] of GROUPS) group(name, tools.map((tool) => {
    const button = toolButton(tool);
    button.setAttribute("aria-pressed", "false");
    return button;
  }));
  const undoing = toolButton({ name: "Undo", path: "M8 4.5 3.8 8.7 8 13 M4 8.7H13.5A5.4 5.4 0 0 1 13.5 19.5H8" }, undo);
  const clearing = toolButton({ name: "Clear", path: "M4.5 7H19.5 M9.5 7V4.5H14.5V7 M6.5 7 7.5 20H16.5L17.5 7 M10.3 10.5V16.5 M13.7 10.5V16.5" }, () => change(EMPTY));
  const redoing = toolButton({ name: "Redo", path: "M16 4.5 20.2 8.7 16 13 M20 8.7H10.5A5.4 5.4 0 0 0 10.5 19.5H16" }, redo);
  undoing.id = "undo";
  redoing.id = "redo";
  clearing.id = "clear";
  group("Whole drawing", [undoing, redoing, clearing]);
  const other = make("input", { id: "element", placeholder: "Si", maxLength: 2, ariaLabel: "Any other element", title: "Any other element", autocomplete: "off" });
  other.addEventListener("input", () => {
    const element = other.value.charAt(0).toUpperCase() + other.value.slice(1).toLowerCase();
    if (/^[A-Z][a-z]?$/.test(element)) { editor.tool = { element, name: `Element ${element}` }; show(); }
  });
  find("tools").firstChild.append(other);
  editor.tool = GROUPS[1][1][0];
  const board = find("board"), handlers = {
    pointerdown: pressed, pointermove: moved, pointerup: released, keydown: useKeys,
    pointercancel: () => { editor.drag = null; show(); }, pointerleave: () => { if (!editor.drag) { editor.spot = {}; show(); } },
  };
  for (const [name, handler] of Object.entries(handlers)) board.addEventListener(name, handler);
  new ResizeObserver(() => show()).observe(board);
  find("drawn").addEventListener("change", () => { if (find("drawn").value.trim()) editor.asked = openSmiles(find("drawn").value.trim()); });
  find("editor-close").addEventListener("click", () => find("editor").close());
  find("editor-add").addEventListener("click", async () => {
    await editor.asked;
    if (!editor.told.smiles) return;
    editor.use(editor.told.smiles);
    change(EMPTY);
    find("editor").close();
  });
}
