"""Pictures of molecules as SVG elements, ready to stand in a web page or a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from itertools import accumulate
from types import ModuleType

import numpy as np
from rdkit import Chem, rdBase

from gtx.base.errors import InputError
from gtx.molecules.reactions import Box, drawn_sides, read_graph

Colour = tuple[float, float, float]
Drawable = str | Chem.Mol | Sequence[Chem.Mol]

_BLUE, _RED = np.array([0.20, 0.47, 0.80]), np.array([0.84, 0.28, 0.22])
SCALE = 36  # height of the colour scale, in pixels
_BOND = 34  # longest a bond is drawn, in pixels
MOST_BOLD = 60  # atoms; the bonds of larger molecules are thin lines
_DARKER = {9: (0.0, 0.5, 0.5), 15: (0.7, 0.35, 0.0), 16: (0.5, 0.45, 0.0), 17: (0.0, 0.5, 0.0)}
"""Colours of F, P, S and Cl with a contrast of 4.5 to 1 on white; RDKit's own have 1.7 to 2.5."""


def draw_molecule(
    molecule: Drawable,
    atom_values: Sequence[float] | np.ndarray | None = None,
    title: str | None = None,
    size: tuple[int, int] = (300, 220),
    ringed: Sequence[int] = (),
    numbers: bool = False,
) -> str:
    """Draw a molecule; atoms are shaded by their values, red above zero and blue below, if there are any.

    Args:
        molecule: SMILES of the molecule, or an RDKit molecule, which is drawn with its atoms; or those of a row, which
            are drawn beside each other, those beside a reaction over its arrow.
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
        return _draw(_as_row(molecule), title, size, ringed, numbers)
    values = np.nan_to_num(np.asarray(atom_values, dtype=float).ravel())
    span = float(abs(values).max(initial=0)) or 1.0
    colours = [_diverging(value / span) for value in values]
    ticks = (-span, 0.0, span) if values.min(initial=0) < 0 else (0.0, span / 2, span)
    scale = _colour_scale(size, _diverging, ticks)
    return _draw(_with_atoms(molecule, len(values)), title, size, ringed, numbers, colours, scale)


def draw_attention(
    molecule: Drawable,
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
        molecule: SMILES of the molecule, or an RDKit molecule, which is drawn with its atoms; or those of a row, which
            are drawn beside each other, those beside a reaction over its arrow.
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
    ticks = (-top, 0.0, top) if signed else (0.0, top / 2, top)

    def shade(level: float) -> Colour:
        return _diverging(level if signed else -level)  # white to blue

    colours, scale = [shade(weight / top) for weight in row], _colour_scale(size, shade, ticks)
    return _draw(_with_atoms(molecule, len(row)), title, size, [receiver], numbers, colours, scale)


def drawing_library() -> ModuleType:
    """Import RDKit's drawing functions, which need libraries of the X Window System that a bare server lacks."""
    try:
        from rdkit.Chem.Draw import rdMolDraw2D
    except ImportError as error:
        raise InputError(
            f"RDKit cannot draw molecules on this machine: {error}. On Debian and Ubuntu, "
            "`apt-get install libxrender1 libxext6 libx11-6` installs the libraries that it needs"
        ) from error
    return rdMolDraw2D


def _draw(
    molecules: Sequence[Chem.Mol],
    title: str | None,
    size: tuple[int, int],
    ringed: Sequence[int],
    numbers: bool,
    colours: Sequence[Colour] | None = None,
    scale: str = "",
) -> str:
    """Draw the molecules of a row, which `read_graph` has read, and the scale of the colours of their atoms under them;
    the atoms of a row are numbered from 0.
    """
    sides = [drawn_sides(mol, hydrogens=colours is not None) for mol in molecules]
    starts = accumulate((mol.GetNumAtoms() for mol in molecules), initial=0)
    drawn = [
        (mol, [start + atom for atom in atoms])
        for each, start in zip(sides, starts, strict=False)
        for mol, atoms in zip(each.molecules, each.atoms, strict=True)
    ]
    boxes, between = sides[0].lay_out(len(molecules) - 1, title or "", size)
    legend = title if len(drawn) == 1 else None
    parts = [
        _draw_part(mol, atoms, legend, box, ringed, numbers, colours and [colours[atom] for atom in atoms])
        for (mol, atoms), box in zip(drawn, boxes, strict=True)
    ]
    width, height = size[0], size[1] + (SCALE if scale else 0)
    frame = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {frame}>{"".join(parts)}{between}{scale}</svg>'


def _draw_part(
    mol: Chem.Mol,
    atoms: Sequence[int],
    title: str | None,
    box: Box,
    ringed: Sequence[int],
    numbers: bool,
    colours: Sequence[Colour] | None,
) -> str:
    """Draw a molecule whose atoms have these numbers in the row, in its box, with a ring around some of them."""
    library = drawing_library()
    drawer = library.MolDraw2DSVG(box.width, box.height)
    options = drawer.drawOptions()
    options.prepareMolsBeforeDrawing = False
    options.clearBackground = False
    options.fixedBondLength = _BOND
    options.bondLineWidth = 2 if mol.GetNumAtoms() <= MOST_BOLD else 1
    options.flagCloseContactsDist = -1  # no red boxes where a large molecule is drawn small
    options.atomHighlightsAreCircles = True
    options.highlightRadius = 0.5  # where a bond is 1.5 long
    options.annotationFontScale = 0.6  # of the numbers of atoms
    options.updateAtomPalette(_DARKER)
    discs = {}
    if colours is not None:
        options.useBWAtomPalette()
        discs = dict(enumerate(colours))
    with rdBase.BlockLogs():
        mol = library.PrepareMolForDrawing(mol, forceCoords=True)
        for atom, number in zip(mol.GetAtoms(), atoms if numbers else (), strict=False):
            atom.SetProp("atomNote", str(number))
        drawer.DrawMolecule(
            mol, legend=title or "", highlightAtoms=list(discs), highlightAtomColors=discs, highlightBonds=[]
        )
    points = [drawer.GetDrawCoords(i) for i in range(mol.GetNumAtoms())]
    positions = [(point.x, point.y) for point in points]
    drawer.FinishDrawing()
    text = drawer.GetDrawingText()
    body = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    ends = [(positions[bond.GetBeginAtomIdx()], positions[bond.GetEndAtomIdx()]) for bond in mol.GetBonds()]
    radius = 0.36 * float(np.median([np.hypot(*np.subtract(begin, end)) for begin, end in ends] or [_BOND]))
    rings = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="none" stroke="#111" '
        f'stroke-width="{min(2.5, 0.4 * radius):.1f}"/>'
        for x, y in (positions[atoms.index(atom)] for atom in ringed if atom in atoms)
    )
    return f'<g transform="translate({box.x} {box.y})">{body}{rings}</g>'


def _as_row(molecule: Drawable) -> list[Chem.Mol]:
    if isinstance(molecule, str):
        return [read_graph(molecule)]
    return [molecule] if isinstance(molecule, Chem.Mol) else list(molecule)


def _with_atoms(molecule: Drawable, count: int) -> list[Chem.Mol]:
    """Return the molecules of a row with so many atoms, with their hydrogens if need be."""
    row = _as_row(molecule)
    full = [Chem.AddHs(mol) for mol in row]
    for each in (row, full):
        if sum(mol.GetNumAtoms() for mol in each) == count:
            return each
    atoms, more = (sum(mol.GetNumAtoms() for mol in each) for each in (row, full))
    raise ValueError(f"{count} values came for {atoms} atoms ({more} with hydrogens)")


def _diverging(level: float) -> Colour:
    """Return a colour from blue at -1 over white at 0 to red at 1."""
    return tuple(1 - abs(level) * (1 - (_RED if level > 0 else _BLUE)))


def _colour_scale(size: tuple[int, int], colour: Callable[[float], Colour], ticks: tuple[float, float, float]) -> str:
    """Draw a colour bar from the first tick to the last, under a picture of `size`."""
    low, _, high = ticks
    steps, left, width = 40, 0.15 * size[0], 0.7 * size[0]
    colours = [colour((low + (k + 0.5) / steps * (high - low)) / high) for k in range(steps)]
    bar = "".join(
        f'<rect x="{left + k * width / steps:.2f}" y="{size[1] + 4}" width="{width / steps + 0.5:.2f}" height="10" '
        f'fill="#{"".join(f"{round(255 * float(part)):02x}" for part in each)}"/>'
        for k, each in enumerate(colours)
    )
    frame = f'<rect x="{left}" y="{size[1] + 4}" width="{width}" height="10" fill="none" stroke="#888"/>'
    labels = "".join(
        f'<text x="{left + (tick - low) / (high - low) * width:.1f}" y="{size[1] + 28}" text-anchor="middle" '
        f'font-family="sans-serif" font-size="12" fill="#222">{escape(f"{tick:.3g}")}</text>'
        for tick in ticks
    )
    return bar + frame + labels
