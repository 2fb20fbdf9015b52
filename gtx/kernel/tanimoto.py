"""Kernel ridge regression of molecules, as a module from batches to outputs, like any network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.errors import InputError
from gtx.kernel.counts import Counts, offsets, shared
from gtx.kernel.ridge import Solution, num_patterns, solve
from gtx.nn import TrainingSet, circular_labels

EXACT = 5_000
"""Up to so many training rows all of them make up a prediction; a target that has blanks of its own lowers it."""
INDUCING, MOST_ROWS = 2_000, 20_000
"""Of more rows, so many do, drawn at random, and at most so many are learned from."""
LARGEST_COUNT = 2**15 - 1
_WORKED_OUT = ("_turned", "_frequent", "_factors")
_FREQUENT = 16  # a kind is frequent if more than one of so many rows has it
_TOGETHER = 512  # molecules whose similarities are worked out at a time


class TanimotoKernel(nn.Module):
    r"""Ridge regression with the Tanimoto kernel of counts of circular substructures: the mean of a Gaussian process.

    \[ k(a, b) = \frac{\sum_s \min(a_s, b_s)}{\sum_s \max(a_s, b_s)}, \qquad
       \hat y(x) = \mu + \sum_i \alpha_i\, k(x, x_i) \]

    over the training molecules i, see `gtx.kernel.solve`. There is nothing to train by gradients: `solve` finds the
    weights in closed form. Counts are those of `gtx.nn.circular_labels`, unfolded.

    Sources: Ralaivola et al. 2005 (https://doi.org/10.1016/j.neunet.2005.07.009) for the kernel, which is positive
    definite; Griffiths et al. 2023 (arXiv:2212.04450) for Gaussian processes of molecules with it.

    Args:
        out_channels: C, predictions per molecule.
        labels: which substructures are told apart: arguments of `gtx.nn.circular_labels` by name, once or more, whose
            labels are counted together; and all that in one or more alternatives, of which `solve` takes the one that
            predicts left-out rows best.
        rows, kinds, entries: sizes of what a solved model holds; 0 before it is solved.

    Shapes:
        a batch of B molecules to `[B, C]`.
    """

    def __init__(
        self,
        out_channels: int,
        labels: Sequence[Sequence[Mapping[str, Any]]],
        rows: int = 0,
        kinds: int = 0,
        entries: int = 0,
    ) -> None:
        super().__init__()
        self.labels = [[dict(one) for one in alternative] for alternative in labels]
        self._hold("kind_label", torch.zeros(kinds, dtype=torch.long))
        self._hold("ptr", torch.zeros(rows + 1, dtype=torch.long))
        self._hold("kind", torch.zeros(entries, dtype=torch.int32))
        self._hold("count", torch.zeros(entries, dtype=torch.int16))
        self._hold("row", torch.zeros(rows, dtype=torch.long))
        self._hold("measured", torch.zeros(rows, out_channels, dtype=torch.bool))
        self._hold("dual", torch.zeros(rows, out_channels))
        for name in ("offset", "ridge", "scale"):
            self._hold(name, torch.zeros(out_channels))

    def _hold(self, name: str, values: Tensor) -> None:
        self.register_buffer(name, values)

    @property
    def learned(self) -> dict[str, Any]:
        """The arguments that make a module like this one, as it was solved."""
        sizes = {"rows": len(self.row), "kinds": len(self.kind_label), "entries": len(self.kind)}
        return {"labels": self.labels, **sizes}

    def check(self) -> None:
        """Raise an `InputError` unless the counts held are in order."""
        ptr, kinds = self.ptr, self.kind_label
        orderly = int(ptr[0]) == 0 and int(ptr[-1]) == len(self.kind) and bool((ptr.diff() >= 0).all())
        within = not len(self.kind) or (int(self.kind.min()) >= 0 and int(self.kind.max()) < len(kinds))
        if not (orderly and within and bool((kinds.diff() > 0).all()) and bool((self.count > 0).all())):
            raise InputError("the kernel's counts of training molecules are not in order")
        self._forget()

    def load_state_dict(self, *arguments: Any, **named: Any) -> Any:
        found = super().load_state_dict(*arguments, **named)
        self.check()  # compiled loops go where the counts lead
        return found

    def _apply(self, *arguments: Any, **named: Any) -> Self:
        self._forget()
        return super()._apply(*arguments, **named)

    def _forget(self) -> None:
        """Drop what is worked out of the counts held."""
        for name in _WORKED_OUT:
            self.__dict__.pop(name, None)

    # what is read

    def counts(self, batch: Batch, alternative: int = 0) -> Counts:
        """How often each substructure occurs in the molecules of a batch, its kind a number of 64 bits."""
        schemes = enumerate(self.labels[alternative])
        labels = torch.cat([circular_labels(batch, **one) + scheme for scheme, one in schemes])
        found = Counts.of(labels.flatten(), batch.batch.repeat(len(labels)), batch.num_graphs)
        return Counts(found.ptr, found.kind, found.count.clamp(max=LARGEST_COUNT))

    @property
    def trained(self) -> Counts:
        """Of the training molecules that are held; kinds are numbers of `kind_label`."""
        return Counts(self.ptr, self.kind.long(), self.count.long())

    def similarity(self, batch: Batch) -> Tensor:
        """The kernel between the molecules of a batch and those held, float64 `[B, rows]`, from 0 to 1."""
        return self._similar(self.counts(batch))

    @cached_property
    def _turned(self) -> tuple[Counts, Tensor]:
        turned = self.trained.by_kind(len(self.kind_label))
        return Counts(turned.ptr, turned.kind.int(), turned.count.int()), self.trained.sizes

    @cached_property
    def _frequent(self) -> tuple[Tensor, Tensor]:
        """Kinds that many molecules have: the line of each, -1 for the others, and how often `[lines, rows]`."""
        turned, sizes = self._turned
        often = (turned.ptr.diff() * _FREQUENT > len(sizes)).nonzero().flatten()
        place = torch.full((len(turned),), -1, dtype=torch.int32)
        place[often] = torch.arange(len(often), dtype=torch.int32)
        table = torch.zeros(len(often), len(sizes), dtype=torch.int32)
        found = turned.subset(often)
        table[found.owner, found.kind.long()] = found.count
        return place, table

    def _similar(self, counts: Counts) -> Tensor:
        turned, sizes = self._turned
        common = shared(counts.known(self.kind_label), turned, len(sizes))
        return common / (counts.sizes[:, None] + sizes - common)

    def _among(self) -> Tensor:
        """The kernel between the molecules held, `[rows, rows]`."""
        turned, sizes = self._turned
        common = shared(self.trained, turned, len(sizes))
        return common / (sizes[:, None] + sizes - common)

    # what is learned

    def solve(self, molecules: TrainingSet, y: Tensor) -> Tensor:
        """Learn from training molecules.

        Args:
            molecules: n of them.
            y: `[n, C]`, NaN for blanks; every column has a value.

        Returns:
            float64 `[n, C]`, what is predicted of each molecule by all others; NaN where it has no value or, of very
            many, was not drawn.
        """
        y = y.double().cpu()
        drawn = _draw(len(y), MOST_ROWS)
        y, left_out = y[drawn], torch.full_like(y, torch.nan)
        if len(self.labels) > 1:
            few = _draw(len(drawn), INDUCING)
            errors = []
            for alternative in range(len(self.labels)):
                found = self._solve(self._count(molecules, drawn[few], alternative), y[few])
                errors.append(float((found.left_out - y[few]).square().nanmean(0).mean()))
            self.labels = [self.labels[min(range(len(errors)), key=errors.__getitem__)]]
        counts = self._count(molecules, drawn, 0)
        left_out[drawn] = self._solve(counts, y).left_out
        self._hold("row", drawn[self.row])
        return left_out

    def _count(self, molecules: TrainingSet, rows: Tensor, alternative: int) -> Counts:
        parts = [self.counts(molecules.batch(some), alternative) for some in rows.split(_TOGETHER)]
        return Counts(
            offsets(torch.cat([part.ptr.diff() for part in parts])),
            torch.cat([part.kind for part in parts]),
            torch.cat([part.count for part in parts]),
        )

    def _solve(self, counts: Counts, y: Tensor) -> Solution:
        """Learn from n molecules, `y` `[n, C]`; rows are called by their numbers among these."""
        most = EXACT / num_patterns(y) ** (1 / 3)  # as many eigenvalue problems, each of cubic cost
        chosen = _draw(len(y), len(y) if len(y) <= most else min(INDUCING, int(most)))
        self._keep(counts.subset(chosen), chosen)
        kernel = torch.cat([self._similar(counts.subset(rows)) for rows in torch.arange(len(y)).split(_TOGETHER)])
        found = solve(kernel, chosen, y)
        held = {"dual": found.dual, "offset": found.centre, "ridge": found.ridge, "scale": found.scale}
        for name, values in held.items():
            self._hold(name, values.float())
        self._hold("measured", ~y[chosen].isnan())
        return found

    def _keep(self, counts: Counts, rows: Tensor) -> None:
        kinds, kind = counts.kind.unique(return_inverse=True)
        self._hold("kind_label", kinds)
        self._hold("ptr", counts.ptr)
        self._hold("kind", kind.int())
        self._hold("count", counts.count.short())
        self._hold("row", rows)
        self.check()

    def hold(self, molecules: TrainingSet) -> None:
        """Hold molecules to compare others with, by the first alternative of labels, and learn nothing of them."""
        rows = torch.arange(len(molecules))
        self._keep(self._count(molecules, rows, 0), rows)

    def rescale(self, slope: Tensor, shift: Tensor) -> None:
        """From now on, predict `slope * prediction + shift`, each `[C]`."""
        self._hold("dual", (self.dual.double() * slope).float())
        self._hold("offset", (self.offset.double() * slope + shift).float())
        self._hold("scale", (self.scale.double() * slope.square()).float())

    # what it says

    def forward(self, batch: Batch) -> Tensor:
        counts, weights = self.counts(batch), self.dual.double()
        if batch.x.device.type == "cpu":
            from gtx.kernel.loops import add_weighted

            (turned, sizes), known = self._turned, counts.known(self.kind_label)
            found = self.offset.double().repeat(len(counts), 1)
            ours, theirs = (known.ptr, known.kind, known.count, counts.sizes), (turned.ptr, turned.kind, turned.count)
            add_weighted(*(part.numpy() for part in (*ours, *theirs, *self._frequent, sizes, weights, found)))
        else:
            found = self.offset.double() + self._similar(counts) @ weights
        return found.to(self.offset.dtype)

    def variance(self, batch: Batch) -> Tensor:
        r"""How uncertain predictions are: \(\sigma^2 (1 - k^\top (K + \lambda I)^{-1} k)\), float64 `[B, C]`.

        It is of the value without the noise of a measurement, whose variance is \(\lambda \sigma^2\). Of more training
        rows than `EXACT` those held alone count, which makes it larger than it is.
        """
        similarity = self.similarity(batch)
        explained = []
        for column, factor in enumerate(self._factors):
            known = similarity[:, self.measured[:, column]]
            half = torch.linalg.solve_triangular(factor, known.T, upper=False)
            explained.append(half.square().sum(0))
        return self.scale.double() * (1 - torch.stack(explained, 1)).clamp(min=0)

    @cached_property
    def _factors(self) -> list[Tensor]:
        kernel, factors = self._among(), []
        for column in range(len(self.offset)):
            rows = self.measured[:, column]
            noise = self.ridge[column].double() * torch.eye(int(rows.sum()), dtype=torch.float64, device=kernel.device)
            factors.append(torch.linalg.cholesky(kernel[rows][:, rows] + noise))
        return factors

    def nearest(self, batch: Batch, count: int = 3) -> tuple[Tensor, Tensor]:
        """The training molecules that are most similar to each molecule, of those held.

        Returns:
            Their row numbers, int64 `[B, count]`, and their similarity, float64 `[B, count]`, the highest first.
        """
        similarity, place = self.similarity(batch).topk(min(count, len(self.row)), dim=1)
        return self.row[place], similarity

    def __repr__(self) -> str:
        return f"TanimotoKernel({len(self.row)} molecules, {len(self.kind_label)} substructures)"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name not in _WORKED_OUT}


def _draw(n: int, count: int) -> Tensor:
    """`count` of n rows, ascending, always the same ones; all of fewer."""
    if n <= count:
        return torch.arange(n)
    return torch.randperm(n, generator=torch.Generator().manual_seed(0))[:count].sort().values
