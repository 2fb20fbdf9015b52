"use strict";
/* Drawings of molecules, and what one can do with them. No function here changes what it is given, or knows the page.
   A drawing is { atoms: [{ element, x, y, charge }], bonds: [{ begin, end, kind }] }, as POST /smiles takes it: lengths
   are in bonds, y goes up. A spot is what a pointer is at: { atom: number }, { bond: number } or {}. */
const EMPTY = { atoms: [], bonds: [] };
const TURN = Math.PI / 3;
const NEAR = 0.3; // closer than this, two atoms are one
const CYCLES = { single: { single: "double", double: "triple" }, double: { double: "either" } };
const DOUBLE = ["double", "either"];

const apart = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);
const angle = (from, to) => Math.atan2(to.y - from.y, to.x - from.x);
const towards = (from, turned, length = 1) => ({ x: from.x + length * Math.cos(turned), y: from.y + length * Math.sin(turned) });
const middle = (a, b) => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });
const bondsAt = (drawing, i) => drawing.bonds.filter((bond) => bond.begin === i || bond.end === i);
const partners = (drawing, i) => bondsAt(drawing, i).map((bond) => (bond.begin === i ? bond.end : bond.begin));
const ends = (drawing, bond) => [drawing.atoms[bond.begin], drawing.atoms[bond.end]];
const lowest = (list, cost) => list.reduce((best, one) => (cost(one) < cost(best) - 1e-6 ? one : best));

function nearest(drawing, point, reach) {
  const close = drawing.atoms.map((atom, i) => [apart(atom, point), i]).filter(([far]) => far < reach);
  return close.length ? lowest(close, ([far]) => far)[1] : undefined;
}

function fromBond(drawing, bond, point) {
  const [a, b] = ends(drawing, bond), long = apart(a, b) || 1;
  const along = ((point.x - a.x) * (b.x - a.x) + (point.y - a.y) * (b.y - a.y)) / long ** 2;
  return apart(point, towards(a, angle(a, b), long * Math.min(1, Math.max(0, along))));
}

/* What is at a point: an atom, or else a bond. */
function spotAt(drawing, point, reach = 0.38) {
  const atom = nearest(drawing, point, reach);
  if (atom !== undefined) return { atom };
  const close = drawing.bonds.map((bond, i) => [fromBond(drawing, bond, point), i]).filter(([far]) => far < 0.7 * reach);
  return close.length ? { bond: lowest(close, ([far]) => far)[1] } : {};
}

const isSpot = (spot) => spot.atom !== undefined || spot.bond !== undefined;
const place = (drawing, spot) => (spot.atom !== undefined ? drawing.atoms[spot.atom] : middle(...ends(drawing, drawing.bonds[spot.bond])));

/* The spot that arrow keys go to: the nearest one in a direction. */
function nextSpot(drawing, spot, direction) {
  const all = [...drawing.atoms.map((_, atom) => ({ atom })), ...drawing.bonds.map((_, bond) => ({ bond }))];
  if (!isSpot(spot)) return all[0] || {};
  const from = place(drawing, spot);
  const ahead = (one) => Math.cos(angle(from, place(drawing, one)) - direction);
  const there = all.filter((one) => apart(from, place(drawing, one)) > 0.01 && ahead(one) > 0.3);
  return there.length ? lowest(there, (one) => apart(from, place(drawing, one)) / ahead(one) ** 2) : spot;
}

const crowding = (drawing, point) => drawing.atoms.reduce((sum, atom) => sum + 1 / (apart(atom, point) ** 2 + 0.01), 0);

/* The direction in which an atom's next bond goes: 120 degrees from the others, where there is most room. */
function freeDirection(drawing, i, kind = "single") {
  const atom = drawing.atoms[i], taken = partners(drawing, i).map((j) => angle(atom, drawing.atoms[j])).sort((a, b) => a - b);
  if (!taken.length) return TURN / 2;
  const kinds = [kind, ...bondsAt(drawing, i).map((bond) => bond.kind)];
  const straight = kinds.includes("triple") || kinds.every((one) => DOUBLE.includes(one));
  const choices = taken.length > 1 ? taken.map((one, k) => (one + (taken[k + 1] ?? taken[0] + 6 * TURN)) / 2)
    : straight ? [taken[0] + 3 * TURN] : [taken[0] + 2 * TURN, taken[0] - 2 * TURN];
  return lowest(choices, (one) => crowding(drawing, towards(atom, one)));
}

/* Where a bond that is drawn with a pointer ends: one bond long, in steps of 30 degrees. */
const snapped = (from, point) => towards(from, (Math.round((2 * angle(from, point)) / TURN) * TURN) / 2);

const withAtom = (drawing, point, element = "C") => ({ ...drawing, atoms: [...drawing.atoms, { element, x: point.x, y: point.y, charge: 0 }] });
const changed = (drawing, i, change) => ({ ...drawing, atoms: drawing.atoms.map((atom, k) => (k === i ? { ...atom, ...change } : atom)) });

function joined(drawing, begin, end, kind) {
  const known = drawing.bonds.findIndex((bond) => [bond.begin, bond.end].includes(begin) && [bond.begin, bond.end].includes(end));
  if (known < 0) return { ...drawing, bonds: [...drawing.bonds, { begin, end, kind }] };
  return { ...drawing, bonds: drawing.bonds.map((bond, k) => (k === known ? { begin, end, kind } : bond)) };
}

/* A bond from an atom to a point, and an atom there if there is none. */
function drawn(drawing, i, point, element, kind) {
  const there = nearest(drawing, point, NEAR);
  if (there === i) return drawing;
  if (there !== undefined) return joined(drawing, i, there, kind);
  return joined(withAtom(drawing, point, element), i, drawing.atoms.length, kind);
}

const grown = (drawing, i, element, kind) => drawn(drawing, i, towards(drawing.atoms[i], freeDirection(drawing, i, kind)), element, kind);

/* A click on a bond: single becomes double, triple and single again; a wedge that is there already is turned around. */
function rebonded(drawing, k, kind) {
  const { begin, end, kind: old } = drawing.bonds[k];
  if (old === kind && (kind === "up" || kind === "down")) return joined(drawing, end, begin, kind);
  return joined(drawing, begin, end, CYCLES[kind]?.[old] ?? kind);
}

function without(drawing, spot) {
  if (!isSpot(spot)) return drawing;
  if (spot.atom === undefined) return { ...drawing, bonds: drawing.bonds.filter((_, k) => k !== spot.bond) };
  const left = (i) => i - (i > spot.atom), bonds = drawing.bonds.filter((bond) => bond.begin !== spot.atom && bond.end !== spot.atom);
  return {
    atoms: drawing.atoms.filter((_, i) => i !== spot.atom),
    bonds: bonds.map((bond) => ({ ...bond, begin: left(bond.begin), end: left(bond.end) })),
  };
}

/* Corners of a ring whose first one is at `from` and whose middle is in a direction. */
function corners(from, direction, size) {
  const radius = 0.5 / Math.sin(Math.PI / size), centre = towards(from, direction, radius);
  return Array.from({ length: size }, (_, k) => towards(centre, direction + Math.PI + (2 * Math.PI * k) / size, radius));
}

/* A ring beside a bond, on the side with more room: its first two corners are the bond's atoms. */
function besideBond(drawing, k, size) {
  const [a, b] = ends(drawing, drawing.bonds[k]), inner = Math.PI / 2 - Math.PI / size;
  const sides = [[a, b], [b, a]].map(([from, to]) => corners(from, angle(from, to) + inner, size));
  return lowest(sides, (points) => points.reduce((sum, point) => sum + crowding(drawing, point), 0));
}

/* A ring through corners; atoms that are there already are part of it. Double bonds go where no other one is. */
function withRing(drawing, points, aromatic) {
  const numbers = [];
  for (const point of points) {
    const there = nearest(drawing, point, NEAR);
    numbers.push(there ?? drawing.atoms.length);
    if (there === undefined) drawing = withAtom(drawing, point);
  }
  const pairs = numbers.map((i, k) => [i, numbers[(k + 1) % numbers.length]]);
  const known = (from, to) => partners(drawing, from).includes(to);
  const alternating = (phase) => pairs.reduce((made, [i, j], k) => {
    if (known(i, j)) return made;
    const taken = [...bondsAt(made, i), ...bondsAt(made, j)].some((bond) => DOUBLE.includes(bond.kind));
    return joined(made, i, j, aromatic && k % 2 === phase && !taken ? "double" : "single");
  }, drawing);
  return lowest([alternating(0), alternating(1)], (made) => -made.bonds.filter((bond) => DOUBLE.includes(bond.kind)).length);
}

/* At the end of a chain a carbon becomes a corner of the ring; any other atom gets the ring by a bond. */
function ringed(drawing, spot, point, size, aromatic) {
  if (spot.bond !== undefined) return withRing(drawing, besideBond(drawing, spot.bond, size), aromatic);
  if (spot.atom === undefined) return withRing(drawing, corners(towards(point, 1.5 * TURN, 0.5 / Math.sin(Math.PI / size)), -1.5 * TURN, size), aromatic);
  const atom = drawing.atoms[spot.atom], direction = freeDirection(drawing, spot.atom), degree = bondsAt(drawing, spot.atom);
  if (atom.element === "C" && !atom.charge && (!degree.length || (degree.length === 1 && degree[0].kind === "single"))) {
    const opposite = degree.length ? angle(drawing.atoms[partners(drawing, spot.atom)[0]], atom) : direction;
    return withRing(drawing, corners(atom, opposite, size), aromatic);
  }
  const grownTo = grown(drawing, spot.atom, "C", "single"), last = grownTo.atoms.at(-1);
  return grownTo.atoms.length > drawing.atoms.length ? withRing(grownTo, corners(last, direction, size), aromatic) : drawing;
}

/* What a tool makes of a spot. A tool has one of: element, bond, ring (and aromatic), charge, erase. */
function applied(drawing, tool, spot, point) {
  if (tool.ring) return ringed(drawing, spot, point, tool.ring, tool.aromatic);
  if (spot.atom !== undefined) {
    if (tool.erase) return without(drawing, spot);
    if (tool.charge) return changed(drawing, spot.atom, { charge: Math.max(-4, Math.min(4, drawing.atoms[spot.atom].charge + tool.charge)) });
    if (tool.bond) return grown(drawing, spot.atom, "C", tool.bond);
    return drawing.atoms[spot.atom].element === tool.element ? drawing : changed(drawing, spot.atom, { element: tool.element, charge: 0 });
  }
  if (spot.bond !== undefined) return tool.erase ? without(drawing, spot) : tool.charge ? drawing : rebonded(drawing, spot.bond, tool.bond || "single");
  if (tool.element) return withAtom(drawing, point, tool.element);
  return tool.bond ? grown(withAtom(drawing, point), drawing.atoms.length, "C", tool.bond) : drawing;
}

/* A ring that a bond belongs to: the shortest way from its one end to the other that is not the bond. */
function ringOf(drawing, bond) {
  const ways = [[bond.begin]], seen = new Set([bond.begin]);
  for (const way of ways) {
    for (const next of partners(drawing, way.at(-1))) {
      if (next === bond.end && way.length > 1) return [...way, next];
      if (!seen.has(next) && next !== bond.end) { seen.add(next); ways.push([...way, next]); }
    }
  }
  return [];
}

/* The side of a double bond on which its second line is: 1 left of the way from begin to end, -1 right, 0 both. */
function innerSide(drawing, bond) {
  const [a, b] = ends(drawing, bond), side = (p) => Math.sign(Math.round(1e3 * ((b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x))));
  const ring = ringOf(drawing, bond), beside = ring.length ? ring : [...partners(drawing, bond.begin), ...partners(drawing, bond.end)];
  if (!ring.length && Math.min(bondsAt(drawing, bond.begin).length, bondsAt(drawing, bond.end).length) === 1) return 0;
  return Math.sign(beside.reduce((sum, i) => sum + side(drawing.atoms[i]), 0)) || 1;
}

/* A cell as Python's csv module writes it. */
const quoted = (cell, always) => (always || /[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);

/* A text of molecules with one more line: in a table, its cell stands in the model's column, or where the header has SMILES. */
function withLine(text, smiles, reads) {
  const before = text.trim() || reads.length < 2 ? text.replace(/\s*$/, "") : reads.map((name) => quoted(name)).join(",");
  const header = before.split("\n")[0], bare = header.replace(/"[^"]*"/g, ""), mark = [",", "\t", ";"].find((one) => bare.includes(one));
  const cells = mark ? header.split(new RegExp(`${mark}(?=(?:[^"]*"[^"]*")*[^"]*$)`)) : [""]; // not within quotes
  const names = cells.map((cell) => cell.replace(/^"|"$/g, "").replaceAll('""', '"'));
  const at = Math.max(0, names.findIndex((name) => name === reads[0] || /smiles/i.test(name)));
  return `${before}${before && "\n"}${names.map((_, i) => (i === at ? smiles : "")).join(mark)}\n`;
}
