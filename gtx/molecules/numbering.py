"""Where the numbers of atoms stand in a drawing: beside their atoms, away from bonds, letters and other numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

ANGLES = np.arange(24) * np.pi / 12
DIRECTIONS = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
STEPS = np.linspace(0, 1, 13)[:, None]  # along a bond


def place_numbers(
    atoms: np.ndarray,
    bonds: Sequence[tuple[int, int]],
    letters: np.ndarray,
    disc: float,
    font: float,
    size: tuple[int, int],
) -> np.ndarray:
    """The middle of every atom's number: of 24 places around the atom's disc the one with most room.

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
        places = atom + (disc + reach[i]) * DIRECTIONS
        room = [
            _distance(places, _near(points, atom, disc, font)),
            _distance(places, _near(np.delete(atoms, i, axis=0), atom, disc, font)) - disc,
            _distance(places, _near(placed, atom, disc, font)) - reach[i],
            np.minimum(places, np.array(size) - places).min(axis=1),  # to the edge of the picture
        ]
        placed = np.concatenate([placed, places[[np.argmax(np.round(np.min(room, axis=0), 3))]]])
    return placed


def _near(points: np.ndarray, atom: np.ndarray, disc: float, font: float) -> np.ndarray:
    """Those that a number of the atom may meet."""
    return points[(np.abs(points - atom) < 4 * (disc + font)).all(axis=1)]


def _distance(places: np.ndarray, points: np.ndarray) -> np.ndarray:
    """From each place to the nearest of the points; far where there are none."""
    return np.linalg.norm(places[:, None] - points, axis=2).min(axis=1, initial=1e3)
