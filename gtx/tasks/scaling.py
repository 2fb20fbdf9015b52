"""Scaling of targets: from their own units to z-scores, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gtx.base.schema import Number, entries, list_of, number
from gtx.data import MoleculeStore
from gtx.molecules import ATOM_FEATURE_VALUES

EXTENSIVE = 0.95
"""The share of a target's variance among training molecules that composition explains if the target is extensive: of
atomisation energies 0.998, of solubilities, free energies of solvation and gaps at most 0.73."""
ELEMENTS = len(ATOM_FEATURE_VALUES["element"]) + 1
"""Columns of a composition: one per atomic number, and column 0 for atoms of no known element."""


@dataclass(frozen=True)
class TargetScaler:
    r"""Scaler of targets to z-scores of the training rows, after subtracting a reference energy per element if wanted.

    For a molecule with \(n_a\) atoms of element a (hydrogen included),

    .. math:: z = \frac{y - \sum_a n_a \varepsilon_a - \mu}{\sigma}

    The references \(\varepsilon\) are fitted by least squares to the training rows. The composition explains most of an
    extensive target, such as an atomisation energy, and the network learns the rest.

    Attributes:
        mean: mean of each target, float64 `[T]`, in the units of the target.
        sd: standard deviation of each target, float64 `[T]`, in the units of the target; 0 for a constant target, whose
            prediction is the mean.
        reference: reference energy (or another quantity) per atom of each atomic number, float64 `[119, T]`, or None.
    """

    mean: Tensor
    sd: Tensor
    reference: Tensor | None = None

    @property
    def extensive(self) -> list[int]:
        """Indices of the targets that have a reference."""
        return [] if self.reference is None else self.reference.any(0).nonzero().flatten().tolist()

    @classmethod
    def fit(cls, y: Tensor, composition: Tensor | None = None, least: float | None = None) -> TargetScaler:
        """Fit a scaler to training rows `[n, T]` in own units, NaN for blanks, with a value of every target.

        With the composition `[n, 119]` of `count_elements`, a target has a reference per element if this explains at
        `least` that share of its variance (adjusted for the number of elements); None for every target.
        """
        targets = y.shape[1]
        y = y.double().cpu()
        size, reference = y.abs().nanmean(0), None
        if composition is not None:
            composition = composition.cpu()
            fits = torch.stack([_per_element(y[:, t], composition) for t in range(targets)], dim=1)
            if least is not None:
                explained = [_explained(y[:, t], composition, fits[:, t]) for t in range(targets)]
                fits *= torch.tensor(explained) >= least
            if least is None or fits.any():
                reference, y = fits, y - composition @ fits
        mean = y.nanmean(0)
        sd = (y - mean).square().nanmean(0).sqrt()
        rounding = 1e-12 if reference is None else 1e-7  # of the mean, and of a fit: what does not vary has no more
        varies = sd > rounding * size
        return cls(mean, torch.where(varies, sd, 0.0), reference)

    def take_over(self, other: TargetScaler, shared: Sequence[int]) -> TargetScaler:
        """Return a scaler with the scales of another for the targets that both have, by their index there, -1 for
        none.
        """
        number = torch.tensor(shared)
        there, at = number >= 0, number.clamp(min=0)

        def merged(own: Tensor, theirs: Tensor) -> Tensor:
            return torch.where(there, theirs[..., at], own)

        none = (s.mean.new_zeros(ELEMENTS, len(s.mean)) for s in (self, other))
        pairs = zip((self.reference, other.reference), none, strict=True)
        reference = merged(*(zeros if own is None else own for own, zeros in pairs))
        mean, sd = merged(self.mean, other.mean), merged(self.sd, other.sd)
        return TargetScaler(mean, sd, reference if reference.any() else None)

    def scale(self, y: Tensor, composition: Tensor | None = None) -> Tensor:
        """Convert own units `[n, T]` to scaled units, float32, 0 where nothing varies; blanks stay blank."""
        return ((y.double() - self._offset(composition)) * torch.where(self.sd > 0, 1 / self.sd, 0.0)).float()

    def unscale(self, output: Tensor, composition: Tensor | None = None) -> Tensor:
        """Convert a network's output `[..., n, T]` to own units, float64."""
        return output.double() * self.sd + self._offset(composition)

    def without_reference(self, composition: Tensor) -> Tensor:
        """Find the elements of molecules that no training molecule had, bool `[n, 119]`; their reference is 0."""
        if self.reference is None:
            return torch.zeros_like(composition, dtype=torch.bool)
        return (composition > 0) & (self.reference[:, self.extensive] == 0).any(1)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, for JSON; a float64 survives the round trip."""
        reference = None if self.reference is None else self.reference.tolist()
        return {"mean": self.mean.tolist(), "sd": self.sd.tolist(), "reference": reference}

    @classmethod
    def from_dict(cls, numbers: dict[str, Any]) -> TargetScaler:
        """Restore a scaler from what `to_dict` returned."""
        values = (numbers[name] for name in ("mean", "sd", "reference"))
        mean, sd, reference = (None if each is None else torch.tensor(each, dtype=torch.float64) for each in values)
        return cls(mean, sd, reference)  # type: ignore[arg-type]  # of the three only the last may be None

    @staticmethod
    def header_entries(targets: int) -> Any:
        """Describe what `to_dict` returns for a number of targets, see `gtx.base.schema.entries`."""
        table = list_of(list_of(Number, targets, targets), ELEMENTS, ELEMENTS)
        numbers = {"mean": list_of(Number, targets, targets), "sd": list_of(number(0), targets, targets)}
        return entries({**numbers, "reference": table | None})

    def _offset(self, composition: Tensor | None) -> Tensor:
        if self.reference is None:
            return self.mean
        if composition is None:
            raise ValueError("this scaler has a reference per element: expected the molecules' composition")
        return self.mean + composition @ self.reference


def has_element_column(store: MoleculeStore) -> bool:
    """Return True if one of the atom features is the element."""
    return "element" in store.atom_columns


def count_elements(store: MoleculeStore) -> Tensor:
    """Count the atoms of each element in each molecule, implicit hydrogens included: float64 `[M, 119]`.

    The column is the atomic number; column 0 counts atoms of no known element.

    Raises:
        ValueError: no column of the atoms is the element.
    """
    if not has_element_column(store):
        raise ValueError(f"expected atoms with a column 'element', got columns {list(store.atom_columns)}")
    names = store.atom_columns
    each = torch.arange(len(store), device=store.device)
    molecule = torch.repeat_interleave(each, store.sizes)
    counts = torch.zeros(len(store), ELEMENTS, dtype=torch.float64, device=store.device)
    counts.index_put_((molecule, store.atoms[:, names.index("element")].long()), counts.new_ones(1), accumulate=True)
    if "hydrogens" in names:  # code i + 1 means i hydrogens that are not atoms of the graph
        hydrogens = store.atoms[:, names.index("hydrogens")].double() - 1
        counts[:, 1].index_add_(0, molecule, hydrogens.clamp(min=0))
    return counts.cpu()


def _explained(y: Tensor, composition: Tensor, reference: Tensor) -> float:
    """Compute the adjusted R² of a reference; minus infinity if there are hardly more molecules than elements."""
    observed = ~y.isnan()
    y, composition = y[observed], composition[observed]
    elements = int((composition > 0).any(0).sum())
    free = len(y) - 1 - elements
    if free <= elements or (spread := float(y.var(correction=0))) == 0:
        return -torch.inf
    left = float((y - composition @ reference).var(correction=0))
    return 1 - (left / free) / (spread / (len(y) - 1))


def _per_element(y: Tensor, composition: Tensor) -> Tensor:
    """Fit y by least squares on the composition and a constant; return the coefficients of the composition."""
    observed = ~y.isnan()
    design = torch.cat([composition[observed], torch.ones(int(observed.sum()), 1, dtype=torch.float64)], dim=1)
    solution = torch.linalg.lstsq(design, y[observed, None], driver="gelsd").solution[:-1, 0]
    return solution * composition[observed].any(0)  # exactly 0 for an element that is not there
