"""Pictures of molecules as SVG elements, ready to stand in a web page or a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape
from types import ModuleType
from typing import NamedTuple

import numpy as np
from rdkit import Chem, rdBase

from gtx.base.errors import InputError
from gtx.molecules.reactions import drawn_sides, read_graph

Colour = tuple[float, float, float]

_BLUE, _RED = np.array([0.20, 0.47, 0.80]), np.array([0.84, 0.28, 0.22])
SCALE = 36  # height of the colour scale, in pixels
_BOND = 34  # longest a bond is drawn, in pixels
MOST_BOLD = 60  # atoms; the bonds of larger molecules are thin lines
_DARKER = {9: (0.0, 0.5, 0.5), 15: (0.7, 0.35, 0.0), 16: (0.5, 0.45, 0.0), 17: (0.0, 0.5, 0.0)}
"""Colours of F, P, S and Cl with a contrast of 4.5 to 1 on white; RDKit's own have 1.7 to 2.5."""


def draw_molecule(
    molecule: str | Chem.Mol,
    atom_values: Sequence[float] | np.ndarray | None = None,
    title: str | None = None,
    size: tuple[int, int] = (300, 220),
    ringed: Sequence[int] = (),
    numbers: bool = False,
) -> str:
    """Draw a molecule; atoms are shaded by their values, red above zero and blue below, if there are any.

    Args:
        molecule: SMILES of the molecule, or an RDKit molecule, which is drawn with its atoms.
        atom_values: values of the atoms in the order of the SMILES, `[n]`, then of the hydrogens if they have values.
        title: line of text under the molecule.
        size: width and height in pixels; a colour scale is added below the molecule.
        ringed: atoms that are marked by a ring.
        numbers: whether the number of each atom, from 0, is written.

    Raises:
        MoleculeError: the SMILES cannot be read.
        InputError: RDKit cannot draw on this machine.
        ValueError: the number of values differs from the number of atoms.
    """
    if atom_values is None:
        drawing = _draw(read_graph(molecule) if isinstance(molecule, str) else molecule, title, size)
        return drawing.svg(over=drawing.rings(ringed) + (drawing.numbers() if numbers else ""))
    values = np.nan_to_num(np.asarray(atom_values, dtype=float).ravel())
    span = float(abs(values).max(initial=0)) or 1.0
    colours = [_diverging(value / span) for value in values]
    drawing = _draw(_with_atoms(molecule, len(values)), title, size, colours)
    over = drawing.rings(ringed) + (drawing.numbers() if numbers else "")
    ticks = (-span, 0.0, span) if values.min(initial=0) < 0 else (0.0, span / 2, span)
    return drawing.svg(over=over, scale=_colour_scale(size, _diverging, ticks))


def draw_attention(
    molecule: str | Chem.Mol,
    weights: np.ndarray,
    receiver: int,
    title: str | None = None,
    size: tuple[int, int] = (360, 280),
    numbers: bool = False,
    ends: tuple[float, float] | None = None,
) -> str:
    """Draw the attention of one atom: the receiver has a ring, and each sender is shaded by its attention weight.

    The colour scale is white to blue, or blue to red if a weight is negative (as without a softmax).

    Args:
        molecule: SMILES of the molecule, or an RDKit molecule, which is drawn with its atoms.
        weights: attention weights `[n, n]`, with receivers in rows and senders in columns, for the atoms in the order
            of the SMILES, then for hydrogens if they are atoms of the graph.
        receiver: number of the receiving atom.
        title: line of text under the molecule.
        size: width and height in pixels; a colour scale is added below.
        numbers: whether the number of each atom, from 0, is written next to the atom.
        ends: lowest and highest weight of the colour scale, so that pictures can be compared; by default those of the
            receiver.

    Raises:
        MoleculeError: the SMILES cannot be read.
        InputError: RDKit cannot draw on this machine.
        ValueError: the weights are not `[n, n]`, or the receiver does not exist.
    """
    weights = np.asarray(weights, dtype=float)
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise ValueError(f"expected attention weights [n, n], receivers in rows; they are {list(weights.shape)}")
    if not 0 <= receiver < len(weights):
        raise ValueError(f"receiver {receiver} is not among the {len(weights)} atoms")
    row = np.nan_to_num(weights[receiver])
    low, high = (row.min(), row.max()) if ends is None else ends
    top, signed = float(max(abs(low), abs(high))) or 1.0, low < 0
    shade, ticks = (_diverging, (-top, 0.0, top)) if signed else (_sequential, (0.0, top / 2, top))
    drawing = _draw(_with_atoms(molecule, len(row)), title, size, [shade(weight / top) for weight in row])
    over = drawing.rings([receiver]) + (drawing.numbers() if numbers else "")
    return drawing.svg(over=over, scale=_colour_scale(size, shade, ticks))


def drawing_library() -> ModuleType:
    """Import RDKit's drawing functions, which need libraries of the X Window System that a bare server lacks.

    Raises:
        InputError: the libraries cannot be loaded; the message names what to install.
    """
    try:
        from rdkit.Chem.Draw import rdMolDraw2D
    except ImportError as error:
        raise InputError(
            f"RDKit cannot draw molecules on this machine: {error}. On Debian and Ubuntu, "
            "`apt-get install libxrender1 libxext6 libx11-6` installs the libraries that it needs"
        ) from error
    return rdMolDraw2D


class _Side(NamedTuple):
    """Drawn molecule: the elements of its SVG, its atoms and bonds, the length of a bond, in pixels, the numbers of the
    atoms in the graph, and the size.
    """

    body: str
    positions: list[tuple[float, float]]
    bonds: list[tuple[int, int]]
    bond_length: float
    atoms: Sequence[int]
    size: tuple[int, int]

    @property
    def radius(self) -> float:
        """Radius of the disc of an atom, in pixels."""
        return 0.36 * self.bond_length

    def rings(self, atoms: Sequence[int]) -> str:
        return "".join(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{self.radius:.1f}" fill="none" stroke="#111" '
            f'stroke-width="{min(2.5, 0.4 * self.radius):.1f}"/>'
            for x, y in (self.positions[self.atoms.index(atom)] for atom in atoms if atom in self.atoms)
        )

    def numbers(self) -> str:
        font = float(np.clip(0.36 * self.bond_length, 7, 11))
        paths = re.findall(r"<path class='atom-\d+' d='([^']*)'", self.body)  # bonds have a class of their own
        letters = [_corners(np.array(re.findall(r"([-\d.]+)[ ,]([-\d.]+)", path), float)) for path in paths]
        atoms = np.array(self.positions).reshape(-1, 2)
        middles = _place_numbers(atoms, self.bonds, np.reshape(letters, (-1, 2)), self.radius, font, self.size)
        return "".join(
            f'<text class="number" x="{x:.1f}" y="{y + 0.36 * font:.1f}" text-anchor="middle" font-family="sans-serif" '
            f'font-size="{font:.1f}" fill="#444">{i}</text>'
            for i, (x, y) in zip(self.atoms, middles, strict=True)
        )


class _Drawing(NamedTuple):
    """Drawn molecule, or both sides of a reaction with an arrow between them; and the size."""

    sides: Sequence[_Side]
    arrow: str
    size: tuple[int, int]

    def svg(self, over: str = "", scale: str = "") -> str:
        body = self._beside([side.body for side in self.sides]) + self.arrow
        return _svg(self.size[0], self.size[1] + (SCALE if scale else 0), body + over + scale)

    def rings(self, atoms: Sequence[int]) -> str:
        return self._beside([side.rings(atoms) for side in self.sides])

    def numbers(self) -> str:
        """Draw the number of each atom in the graph beside it, from 0."""
        return self._beside([side.numbers() for side in self.sides])

    def _beside(self, parts: Sequence[str]) -> str:
        """Place a part of the picture on each side of the arrow."""
        first, *others = parts
        return first + "".join(f'<g transform="translate({0.55 * self.size[0]:.1f})">{part}</g>' for part in others)


def _draw(mol: Chem.Mol, title: str | None, size: tuple[int, int], colours: Sequence[Colour] | None = None) -> _Drawing:
    """Draw a molecule that `read_graph` has read, with colours of its atoms."""
    drawn = drawn_sides(mol, None if colours is None else len(colours))
    if len(drawn.molecules) == 1:
        return _Drawing([_draw_side(mol, drawn.atoms[0], title, size, colours)], "", size)
    width, height = size
    own = int(0.45 * width), height
    sides = [
        _draw_side(side, atoms, None, own, None if colours is None else [colours[atom] for atom in atoms])
        for side, atoms in zip(drawn.molecules, drawn.atoms, strict=True)
    ]
    longest, text = width // 6, 'text-anchor="middle" font-family="sans-serif" fill="#111"'
    agents = drawn.agents if len(drawn.agents) <= longest else f"{drawn.agents[: longest - 1]}…"
    arrow = (
        f'<path d="M{0.455 * width:.1f} {height / 2}H{0.545 * width:.1f}m-6 -4l6 4l-6 4" fill="none" stroke="#111" '
        f'stroke-width="1.5"/><text x="{width / 2}" y="11" font-size="10" {text}>{escape(agents)}</text>'
        f'<text x="{width / 2}" y="{height - 6}" font-size="12" {text}>{escape(title or "")}</text>'
    )
    return _Drawing(sides, arrow, size)


def _corners(points: np.ndarray) -> np.ndarray:
    """Return the corners of the box around points, and its middle: `[5, 2]`."""
    (left, top), (right, bottom) = points.min(axis=0), points.max(axis=0)
    middle = ((left + right) / 2, (top + bottom) / 2)
    return np.array([(left, top), (right, top), (left, bottom), (right, bottom), middle])


def _draw_side(
    mol: Chem.Mol,
    atoms: Sequence[int],
    title: str | None,
    size: tuple[int, int],
    colours: Sequence[Colour] | None,
) -> _Side:
    library = drawing_library()
    drawer = library.MolDraw2DSVG(*size)
    options = drawer.drawOptions()
    options.prepareMolsBeforeDrawing = False
    options.clearBackground = False
    options.fixedBondLength = _BOND
    options.bondLineWidth = 2 if mol.GetNumAtoms() <= MOST_BOLD else 1
    options.flagCloseContactsDist = -1  # no red boxes where a large molecule is drawn small
    options.atomHighlightsAreCircles = True
    options.highlightRadius = 0.5  # where a bond is 1.5 long
    options.updateAtomPalette(_DARKER)
    discs = {}
    if colours is not None:
        options.useBWAtomPalette()
        discs = dict(enumerate(colours))
    with rdBase.BlockLogs():
        mol = _prepared(mol, library.PrepareMolForDrawing)
        drawer.DrawMolecule(
            mol, legend=title or "", highlightAtoms=list(discs), highlightAtomColors=discs, highlightBonds=[]
        )
    points = [drawer.GetDrawCoords(i) for i in range(mol.GetNumAtoms())]
    positions = [(point.x, point.y) for point in points]
    drawer.FinishDrawing()
    text = drawer.GetDrawingText()
    body = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in mol.GetBonds()]
    lengths = [np.hypot(*np.subtract(positions[i], positions[j])) for i, j in bonds]
    return _Side(body, positions, bonds, float(np.median(lengths or [_BOND])), atoms, size)


def _prepared(mol: Chem.Mol, prepare: Callable[..., Chem.Mol]) -> Chem.Mol:
    try:
        return prepare(mol, forceCoords=True)
    except ValueError:  # bonds written as aromatic that have no Kekulé form
        return prepare(mol, kekulize=False, forceCoords=True)


def _with_atoms(molecule: str | Chem.Mol, count: int) -> Chem.Mol:
    mol = read_graph(molecule) if isinstance(molecule, str) else molecule
    if mol.GetNumAtoms() == count:
        return mol
    full = Chem.AddHs(mol)
    if full.GetNumAtoms() == count:
        return full
    raise ValueError(f"{count} values came for {mol.GetNumAtoms()} atoms ({full.GetNumAtoms()} with hydrogens)")


def _sequential(level: float) -> Colour:
    """Return a colour from white at 0 to blue at 1."""
    return tuple(1 - level * (1 - _BLUE))


def _diverging(level: float) -> Colour:
    """Return a colour from blue at -1 over white at 0 to red at 1."""
    return tuple(1 - abs(level) * (1 - (_RED if level > 0 else _BLUE)))


def _colour_scale(size: tuple[int, int], colour: Callable[[float], Colour], ticks: tuple[float, float, float]) -> str:
    """Draw a colour bar from the first tick to the last, under a picture of `size`."""
    low, _, high = ticks
    steps, left, width = 40, 0.15 * size[0], 0.7 * size[0]
    bar = "".join(
        f'<rect x="{left + k * width / steps:.2f}" y="{size[1] + 4}" width="{width / steps + 0.5:.2f}" height="10" '
        f'fill="{_hex(colour((low + (k + 0.5) / steps * (high - low)) / high))}"/>'
        for k in range(steps)
    )
    frame = f'<rect x="{left}" y="{size[1] + 4}" width="{width}" height="10" fill="none" stroke="#888"/>'
    labels = "".join(
        f'<text x="{left + (tick - low) / (high - low) * width:.1f}" y="{size[1] + 28}" text-anchor="middle" '
        f'font-family="sans-serif" font-size="12" fill="#222">{escape(f"{tick:.3g}")}</text>'
        for tick in ticks
    )
    return bar + frame + labels


def _hex(colour: Colour) -> str:
    return "#" + "".join(f"{round(255 * float(c)):02x}" for c in colour)


def _svg(width: int, height: int, body: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">{body}</svg>'
    )


# --- Positions of atom numbers in a drawing: beside their atoms, away from bonds, letters and other numbers.

ANGLES = np.arange(24) * np.pi / 12
DIRECTIONS = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
STEPS = np.linspace(0, 1, 13)[:, None]  # along a bond


def _place_numbers(
    atoms: np.ndarray,
    bonds: Sequence[tuple[int, int]],
    letters: np.ndarray,
    disc: float,
    font: float,
    size: tuple[int, int],
) -> np.ndarray:
    """Return the middle of every atom's number: of 24 positions around the atom's disc the one with most room.

    Args:
        atoms: `[n, 2]`, in pixels.
        bonds: the two atoms of each.
        letters: `[m, 2]`, points on the letters of atoms.
        disc: radius of the disc behind every atom.
        font: size of the numbers.
        size: width and height of the picture.

    Returns:
        `[n, 2]`.
    """
    reach = 0.36 * font * np.array([max(2, len(str(i))) for i in range(len(atoms))])  # half of a number's width
    lines = [atoms[i] + STEPS * (atoms[j] - atoms[i]) for i, j in bonds]
    points = np.concatenate([letters, *lines])
    placed = np.empty((0, 2))
    for i, atom in enumerate(atoms):
        candidates = atom + (disc + reach[i]) * DIRECTIONS
        room = [
            _distance(candidates, _near(points, atom, disc, font)),
            _distance(candidates, _near(np.delete(atoms, i, axis=0), atom, disc, font)) - disc,
            _distance(candidates, _near(placed, atom, disc, font)) - reach[i],
            np.minimum(candidates, np.array(size) - candidates).min(axis=1),  # to the edge of the picture
        ]
        placed = np.concatenate([placed, candidates[[np.argmax(np.round(np.min(room, axis=0), 3))]]])
    return placed


def _near(points: np.ndarray, atom: np.ndarray, disc: float, font: float) -> np.ndarray:
    """Select the points that the number of an atom may overlap."""
    return points[(np.abs(points - atom) < 4 * (disc + font)).all(axis=1)]


def _distance(positions: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Measure the distance from each position to the nearest point; large without points."""
    return np.linalg.norm(positions[:, None] - points, axis=2).min(axis=1, initial=1e3)
