"""Kernel ridge regression of molecules, as a module from batches to outputs, like any network."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch

from gtx.base.errors import InputError
from gtx.encodings.sides import label_environments
from gtx.kernel.kernels import DescriptorKernel, SubstructureCounts, TanimotoKernel
from gtx.kernel.ridge import KernelRidgeSolution, cost, draw, leave_one_out, rows_of_equal_cost, solve_kernel_ridge
from gtx.nn.features import TrainingMolecules

MOST_EXACT, MOST_COST = 8_000, 5e12
"""Limits of an exact solution, which sums over all training rows: their number, and the cost of targets that differ in
their blanks (`gtx.kernel.ridge.cost`), here some minutes of a core."""
INDUCING, MOST_ROWS = 3_000, 20_000
"""Beyond these limits: the number of rows that predictions sum over, and the maximum that the solution learns from,
both drawn at random."""
MOST_CHOOSING = 1_000
"""Maximum number of rows that choose the kernel."""


class DescriptorTerm(NamedTuple):
    """Share and length of the kernel of descriptors beside that of substructures, see `KernelRidge`."""

    share: float
    length: float


DESCRIPTOR_TERMS = (
    DescriptorTerm(0, 2),
    DescriptorTerm(0.5, 2),
    DescriptorTerm(0.9, 2),
    DescriptorTerm(0.5, 4),
    DescriptorTerm(0.9, 4),
    DescriptorTerm(0.97, 8),
)
"""Choices of `KernelRidge.solve`."""
EMBEDDING_SHARES, EMBEDDING_LENGTHS = (0.25, 0.5, 0.75, 0.9), (1.0, 2.0, 4.0)
"""Its choices for the third kernel, that of embeddings."""
CHUNK = 512  # molecules that are compared at a time


class KernelRidge(TanimotoKernel):
    r"""Kernel ridge regression on molecules, the mean of a Gaussian process.

    \[ \hat y(x) = \mu + \sum_i \alpha_i\, k(x, x_i), \qquad
       k = (1 - s_F) \bigl[(1 - s_D)\, k_T + s_D\, k_D\bigr] + s_F\, k_F \]

    over the training molecules i, see `gtx.kernel.solve_kernel_ridge`. \(k_T\) compares substructures
    (`TanimotoKernel`), \(k_D\) descriptors and \(k_F\) embeddings by a pretrained network (both `DescriptorKernel`).
    The model is not trained by gradients. The method `solve` computes the weights in closed form, and chooses the
    kernel with the smallest leave-one-out error: first \(k_T\) and \(k_D\), then \(k_F\).

    Sources: Griffiths et al. 2023 (arXiv:2212.04450) for Gaussian processes of molecules; Rasmussen & Williams 2006,
    section 4.2.4, for the sum of kernels.

    Args:
        out_channels: number C of predictions per molecule.
        labels: one or more alternatives of `TanimotoKernel.labels`, from which `solve` chooses.
        num_descriptors: number D of descriptors of each molecule in `batch.u`; with 0, \(s_D = 0\).
        rows, kinds, entries: sizes of a solved model, see `TanimotoKernel`; 0 before `solve`.
        foundation: `{"sha256": of the file of the pretrained network, "width": of its embedding}`, and for reactions
            "sides", the numbers of codes of each column; None for none, \(s_F = 0\).

    Attributes:
        embed: pretrained network, from a batch of B molecules to `[B, width]`, which
            `gtx.prediction.foundation_embedding.attach_foundation` sets; not part of the state dict.

    Shapes:
        a batch of B molecules to `[B, C]`.
    """

    measured: Tensor
    dual: Tensor
    offset: Tensor
    ridge: Tensor
    scale: Tensor
    cached_names = (*TanimotoKernel.cached_names, "factors")

    def __init__(
        self,
        out_channels: int,
        labels: Sequence[Sequence[Mapping[str, Any]]],
        num_descriptors: int = 0,
        rows: int = 0,
        kinds: int = 0,
        entries: int = 0,
        foundation: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(labels[0], rows, kinds, entries)
        self.alternatives: list[list[dict[str, Any]]] = [[dict(one) for one in alternative] for alternative in labels]
        self.descriptors = DescriptorKernel(num_descriptors, rows) if num_descriptors else None
        self.foundation: dict[str, Any] | None = None if foundation is None else dict(foundation)
        self.embeddings = None if foundation is None else DescriptorKernel(foundation["width"], rows)
        self.embed: Callable[[Batch], Tensor] | None = None
        self.register_buffer("measured", torch.zeros(rows, out_channels, dtype=torch.bool))
        self.register_buffer("dual", torch.zeros(rows, out_channels))
        for name in ("offset", "ridge", "scale"):
            self.register_buffer(name, torch.zeros(out_channels))

    @property
    def learned_arguments(self) -> dict[str, Any]:
        """Arguments for a module with the same sizes and kernels."""
        sizes = {"rows": len(self.row), "kinds": len(self.kind_label), "entries": len(self.kind)}
        num_descriptors = 0 if self.descriptors is None else self.descriptors.steps.shape[1]
        arguments = {"labels": [self.labels], "num_descriptors": num_descriptors, **sizes}
        if self.foundation is not None:
            arguments["foundation"] = None if self.embeddings is None else self.foundation
        return arguments

    @property
    def has_all_rows(self) -> bool:
        """True if every molecule that the model was fitted to is a reference."""
        return self.row.cpu().equal(torch.arange(len(self.row)))

    @property
    def kernel_names(self) -> list[str]:
        """Names of the kernels that are summed: substructures, descriptors, foundation."""
        names = {"descriptors": "descriptors", "embeddings": "foundation"}
        return ["substructures", *(names[name] for name in self.feature_kernels)]

    @property
    def feature_kernels(self) -> dict[str, DescriptorKernel]:
        """Kernels of descriptors and of embeddings, those that there are, by the name of what they read."""
        both = {"descriptors": self.descriptors, "embeddings": self.embeddings}
        return {name: kernel for name, kernel in both.items() if kernel is not None}

    def check(self) -> None:
        """Raise an `InputError` unless counts, shares and lengths are in order."""
        super().check()
        for name, kernel in self.feature_kernels.items():
            if not 0 <= float(kernel.share) <= 1:
                raise InputError(f"the kernel's share of {name}: expected 0 to 1, got {kernel.share:g}")
            if not float(kernel.length) > 0:
                raise InputError(f"the kernel's length of {name}: expected a positive number, got {kernel.length:g}")

    # learning

    @staticmethod
    def rows_used(n: int) -> Tensor:
        """Return the numbers of the rows that `solve` can use of n: all, or `MOST_ROWS` drawn at random."""
        return draw(n, MOST_ROWS)

    def solve(self, molecules: TrainingMolecules, y: Tensor, embeddings: Tensor | None = None) -> Tensor:
        """Fit the model to training molecules.

        Args:
            molecules: the n training molecules, at most `MOST_ROWS`, see `rows_used`.
            y: targets `[n, C]`, NaN for blanks; every column has a value.
            embeddings: result of `embed` for the training molecules, `[n, width]`, for a kernel that compares
                embeddings.

        Returns:
            Leave-one-out predictions, float64 `[n, C]`; NaN for blanks.
        """
        y, features = y.double().cpu(), self._features(molecules.descriptors, embeddings)
        features = {name: values.cpu() for name, values in features.items()}
        for name, kernel in self.feature_kernels.items():
            kernel.scaler.observe(features[name])
        self._choose(molecules, y, features)
        return self._solve(self.count_substructures(molecules, torch.arange(len(y))), features, y).left_out

    def _features(self, descriptors: Tensor | None, embeddings: Tensor | None) -> dict[str, Tensor]:
        """Collect the feature vectors of molecules, `[B, width]` each, by the name of the kernel that reads them."""
        features, every = {}, {"descriptors": descriptors, "embeddings": embeddings}
        for name, kernel in self.feature_kernels.items():
            values, width = every[name], kernel.steps.shape[1]
            if values is None or values.dim() != 2 or values.shape[1] != width:
                came = "none" if values is None else f"shape {list(values.shape)}"
                raise ValueError(f"expected {width} {name} for each molecule, [B, {width}], got {came}")
            features[name] = values
        return features

    def _choose(self, molecules: TrainingMolecules, y: Tensor, features: Mapping[str, Tensor]) -> None:
        """Choose the labels, shares and lengths of the least leave-one-out error on some of the rows."""
        few = draw(len(y), rows_of_equal_cost(MOST_CHOOSING, y))
        y, blends = y[few], DESCRIPTOR_TERMS if self.descriptors is not None else DESCRIPTOR_TERMS[:1]
        y = y[:, (~y.isnan()).sum(0) > 1]
        alternatives = len(self.alternatives) * len(blends)
        if not y.numel() or (alternatives == 1 and self.embeddings is None):
            return

        def error(kernel: Tensor) -> float:
            off = solve_kernel_ridge(kernel, torch.arange(len(few)), y).left_out - y
            return float(off.square().nanmean(0).mean())

        for name, part in self.feature_kernels.items():
            part.set_references(features[name][few])
        grams: dict[float, Tensor] = {}
        if self.descriptors is not None:
            grams = {length: self.descriptors.gram(length) for length in {blend.length for blend in blends}}
        least, best, base = torch.inf, (self.labels, blends[0]), torch.zeros(0)
        for labels in self.alternatives:
            self.labels = labels
            self.set_counts(self.count_substructures(molecules, few), few)
            similar = self.compare_references()
            for blend in blends:
                kernel = similar.lerp(grams[blend.length], blend.share) if grams else similar
                if (value := error(kernel)) < least:
                    least, best, base = value, (labels, blend), kernel
        self.labels, blend = best
        if self.descriptors is not None and blend.share:
            self.descriptors.share.fill_(blend.share)
            self.descriptors.length.fill_(blend.length)
        else:
            self.descriptors = None
        if self.embeddings is not None:
            self._choose_embeddings(self.embeddings, base, least, error)

    def _choose_embeddings(
        self, kernel: DescriptorKernel, base: Tensor, least: float, error: Callable[[Tensor], float]
    ) -> None:
        """Choose the share and the length of the kernel of embeddings.

        It is left out if no choice has an error below `least`, that of the kernel `base` without it.
        """
        grams = {length: kernel.gram(length) for length in EMBEDDING_LENGTHS}
        errors = {(s, each): error(base.lerp(grams[each], s)) for s, each in product(EMBEDDING_SHARES, grams)}
        share, length = min(errors, key=errors.__getitem__)
        if errors[share, length] < least:
            kernel.share.fill_(share)
            kernel.length.fill_(length)
        else:
            self.embeddings = None

    def _solve(self, counts: SubstructureCounts, features: Mapping[str, Tensor], y: Tensor) -> KernelRidgeSolution:
        """Learn from n molecules with `features` `[n, D]` each and `y` `[n, C]`; `row` numbers these molecules."""
        exact = len(y) <= MOST_EXACT and cost(y) <= MOST_COST
        chosen = draw(len(y), len(y) if exact else min(INDUCING, rows_of_equal_cost(2 * INDUCING, y)))
        self.set_counts(counts.subset(chosen.numpy()), chosen)
        for name, part in self.feature_kernels.items():
            part.set_references(features[name][chosen])
        kernel = torch.cat([*self._kernels(counts, features)])
        solution = solve_kernel_ridge(kernel, chosen, y)
        solved = {"dual": solution.dual, "offset": solution.centre, "ridge": solution.ridge, "scale": solution.scale}
        for name, values in solved.items():
            self.register_buffer(name, values.float())
        self.register_buffer("measured", ~y[chosen].isnan())
        return solution

    def rescale(self, slope: Tensor, shift: Tensor) -> None:
        """Change the predictions to `slope * prediction + shift`, each `[C]`."""
        self.register_buffer("dual", (self.dual.double() * slope).float())
        self.register_buffer("offset", (self.offset.double() * slope + shift).float())
        self.register_buffer("scale", (self.scale.double() * slope.square()).float())

    # prediction

    def kernel(self, batch: Batch) -> Tensor:
        """Compute the kernel between the molecules of a batch and the references, float64 `[B, rows]`, from 0 to 1."""
        return self._blend(self._similarity(self.counts(batch)), self._features_of(batch))

    def _kernels(self, counts: SubstructureCounts, features: Mapping[str, Tensor]) -> Iterator[Tensor]:
        """Yield the kernel for some molecules at a time, `[CHUNK, rows]`, to bound the memory."""
        for start in range(0, max(1, counts.table.shape[0]), CHUNK):  # a batch may be empty
            rows = slice(start, start + CHUNK)
            some = {name: values[rows] for name, values in features.items()}
            yield self._blend(self._similarity(counts.subset(rows)), some)

    def _blend(self, similar: Tensor, features: Mapping[str, Tensor] | None) -> Tensor:
        """Sum the kernels by their shares; without features, those of the references are taken."""
        for name, part in self.feature_kernels.items():
            kernel = part.gram(float(part.length)) if features is None else part(features[name])
            similar = similar.lerp(kernel, part.share.double())
        return similar

    def _features_of(self, batch: Batch) -> dict[str, Tensor]:
        """Collect the feature vectors of a batch by the name of the kernel that reads them."""
        if self.embeddings is not None and self.embed is None:
            raise ValueError("embed: the kernel compares embeddings, and has no network that makes them")
        embeddings = None if self.embeddings is None or self.embed is None else self.embed(batch)
        return self._features(getattr(batch, "u", None), embeddings)

    def forward(self, batch: Batch) -> Tensor:
        dual = self.dual.double()
        parts = [kernel @ dual for kernel in self._kernels(self.counts(batch), self._features_of(batch))]
        return (self.offset.double() + torch.cat(parts)).to(self.offset.dtype)

    def of_embeddings(self, embeddings: Tensor) -> Tensor:
        """Compute the contribution of embeddings `[B, width]` to the predictions, float64 `[B, C]`.

        Raises:
            ValueError: the kernel does not compare embeddings.
        """
        if self.embeddings is None:
            raise ValueError("embeddings: the kernel does not compare them")
        return float(self.embeddings.share) * (self.embeddings(embeddings) @ self.dual.double())

    def contributions(self, molecule: Batch) -> tuple[Tensor, Tensor]:
        r"""Compute the contributions of the atoms `[N, C]`, and of the features `[C]`, of one molecule to a prediction.
        The contributions and the mean \(\mu\) sum to the prediction.

        The Tanimoto kernel is a sum over substructures k, which occur \(a_k\) times in the molecule and \(b_{ik}\)
        times in training molecule i. The prediction is therefore also a sum over substructures:

        \[ \hat y - \mu = \sum_k c_k + \sum_i \alpha_i \bigl[(1 - s_F) s_D\, k_D(x, x_i) + s_F\, k_F(x, x_i)\bigr],
           \qquad c_k = (1 - s_F)(1 - s_D) \sum_i \alpha_i \frac{\min(a_k, b_{ik})}{\sum_l \max(a_l, b_{il})} \]

        The contribution \(c_k\) is divided equally among the \(a_k\) occurrences of the substructure, and then among
        the atoms of an occurrence (within r bonds of its centre). The denominator contains all substructures of the
        molecule. A contribution is therefore not the change of the prediction if the substructure is removed.
        """
        (kinds, table), dual = self.counts(molecule), self.dual.double()
        references, count = self.kind_label.cpu().numpy(), table.data  # of one molecule, every kind has an entry
        known = np.isin(kinds, references)
        shared, sizes = self._inverted_index[0][:, np.searchsorted(references, kinds[known])], self._inverted_index[1]
        shared.data = np.minimum(shared.data, np.repeat(count[known], np.diff(shared.indptr)))
        union = count.sum() + sizes - shared.sum(1)
        of_kind = dual.new_zeros(len(kinds), dual.shape[1])
        of_kind[torch.from_numpy(known)] = torch.from_numpy(shared.T @ (dual.numpy() / union[:, None]))
        kind, occurrences = torch.from_numpy(kinds), torch.from_numpy(count)
        brought = self._blend(torch.zeros(1, len(dual), dtype=torch.float64), self._features_of(molecule)) @ dual
        rest = math.prod(1 - float(part.share) for part in self.feature_kernels.values())
        atoms = dual.new_zeros(molecule.num_nodes, dual.shape[1])
        bonds = torch.eye(molecule.num_nodes, dtype=torch.float64)
        bonds[tuple(molecule.edge_index)] = 1
        for environments in label_environments(molecule, self.labels):
            within = torch.eye(molecule.num_nodes, dtype=torch.float64)
            for labels in environments:
                place = torch.searchsorted(kind, labels).clamp(max=len(kind) - 1)
                counted = (kind[place] == labels)[:, None]
                part = rest * counted * of_kind[place] / occurrences[place, None]
                atoms += within.T @ (part / within.sum(1, keepdim=True))
                within = (within @ bonds > 0).double()
        return atoms, brought[0]

    def variance(self, batch: Batch) -> Tensor:
        r"""Compute the posterior variance \(\sigma^2 (1 - k^\top (K + \lambda I)^{-1} k)\), float64 `[B, C]`.

        The variance does not include the noise of a measurement, \(\lambda \sigma^2\). With more training rows than
        `MOST_EXACT`, only the reference molecules are used, and the variance is an upper bound.
        """
        return self.variance_of(self.kernel(batch))

    def variance_of(self, kernel: Tensor) -> Tensor:
        """Compute the posterior variance `[B, C]` from the kernel between molecules and references, `[B, rows]`."""
        explained = []
        for column, factor in enumerate(self.factors):
            measured = kernel[:, self.measured[:, column]]
            half = torch.linalg.solve_triangular(factor, measured.T, upper=False)
            explained.append(half.square().sum(0))
        return self.scale.double() * (1 - torch.stack(explained, 1)).clamp(min=0)

    def values(self) -> Tensor:
        r"""Recover the targets of the reference molecules, \((K + \lambda I)\alpha + \mu\).

        Returns:
            float64 `[rows, C]`, in units of the outputs; NaN for blanks.
        """
        dual, ridge = self.dual.double(), self.ridge.double()
        targets = self.gram() @ dual + ridge * dual + self.offset.double()
        return targets.masked_fill(~self.measured, torch.nan)

    def gram(self) -> Tensor:
        """Compute the kernel between the references, float64 `[rows, rows]`."""
        return self._blend(self.compare_references(), None)

    def with_references(self, molecules: TrainingMolecules, embeddings: Tensor | None = None) -> KernelRidge:
        """Return the same kernel with other reference molecules, which compares molecules but does not predict.

        Args:
            molecules: n of them.
            embeddings: `[n, width]`, for a kernel that compares embeddings.
        """
        kernel = deepcopy(self)
        kernel.set_references(molecules)
        for name, values in self._features(molecules.descriptors, embeddings).items():
            kernel.feature_kernels[name].set_references(values.cpu())
        return kernel

    @cached_property
    def factors(self) -> list[Tensor]:
        """Cholesky factors of the references' kernel with the ridge, one for each output, of the rows with a value."""
        kernel, factors = self.gram(), []
        for column in range(len(self.offset)):
            rows = self.measured[:, column]
            noise = self.ridge[column].double() * torch.eye(int(rows.sum()), dtype=torch.float64, device=kernel.device)
            factors.append(torch.linalg.cholesky(kernel[rows][:, rows] + noise))
        return factors


# --- The learning curve: the error with fewer training rows, extrapolated to more.

DIVISORS = (4, 2, 1)
"""The curve is measured with a quarter, a half and all of the rows."""
DRAWS = 2
"""How often the rows are divided at random into halves and quarters."""
FEWEST = 100
"""Fewest molecules whose learning curve is measured."""
_SAME = 1 - 1e-9


class LearningCurve(NamedTuple):
    r"""Leave-one-out error of a kernel model by number of training molecules, as a power law through its ends.

    \[ e(m) = e(n) \Bigl(\frac mn\Bigr)^{-b}, \qquad b = \max\Bigl(0, \log_4 \frac{e(n/4)}{e(n)}\Bigr) \]

    Attributes:
        rows: numbers of molecules, ascending; the last is n.
        errors: root mean square errors with as many.
    """

    rows: tuple[int, ...]
    errors: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """The exponent b; 0 if more molecules do not lower the error."""
        if not 0 < self.errors[-1] < self.errors[0]:
            return 0.0
        return math.log(self.errors[0] / self.errors[-1]) / math.log(self.rows[-1] / self.rows[0])

    def ratio(self, rows: float) -> float:
        """Extrapolate the error with a number of molecules, as a ratio to the error with all n."""
        return (rows / self.rows[-1]) ** -self.exponent


def measure_learning_curve(kernel: Tensor, y: Tensor, ridge: float) -> LearningCurve | None:
    """Measure the learning curve of a kernel `[n, n]` and values `[n]`, by leaving out one molecule of each sample.

    The rows are divided at random into halves and into quarters. Of molecules that the kernel cannot distinguish, such
    as repeated measurements, only the first takes part, because the others would predict it. None for fewer than
    `FEWEST` molecules, or without an error.
    """
    first = (kernel > _SAME).int().argmax(1) == torch.arange(len(y))
    kernel, y = kernel[first][:, first], y[first]
    if (n := len(y)) < FEWEST:
        return None
    generator = torch.Generator().manual_seed(0)
    errors = []
    for divisor in DIVISORS:
        squares = [
            leave_one_out(kernel[rows][:, rows], (y[rows] - y[rows].mean())[:, None], ridge)[1].square()
            for _ in range(1 if divisor == 1 else DRAWS)
            for rows in torch.randperm(n, generator=generator).tensor_split(divisor)
        ]
        errors.append(float(torch.cat(squares).mean().sqrt()))
    return LearningCurve(tuple(n // divisor for divisor in DIVISORS), tuple(errors)) if min(errors) > 0 else None


def measure_learning_curves(model: KernelRidge) -> list[LearningCurve | None]:
    """Measure the learning curve of each output of a fitted kernel model, whose references are its training molecules.

    The errors are in units of the outputs; None for an output with too few molecules.
    """
    if len(model.row) < FEWEST:
        return [None] * len(model.ridge)
    kernel, values = model.gram().cpu(), model.values().cpu()
    known = ~values.isnan()
    return [
        measure_learning_curve(kernel[rows][:, rows], column[rows], float(ridge))
        for column, rows, ridge in zip(values.T, known.T, model.ridge, strict=True)
    ]
