"""What each group of the descriptors is worth, on validation rows, and what it costs, as a page.

    python -m experiments.descriptors            # minutes of a core; continues where it was stopped
    python -m experiments.descriptors --costs    # the processor time of each group
    python -m experiments.descriptors --page     # writes the page of what has been found

A candidate is the set of all descriptors without some groups. It is scored by the kernel of `gtx train`, without a
network, and by ridge regression on the descriptors alone.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors as rd
from sklearn.linear_model import RidgeCV
from torch import Tensor

from experiments.all_sets import SETS, available, error
from experiments.runs import Run
from experiments.summary import markdown, mean_log_ratio
from experiments.tables import RESULTS, ROOT
from gtx.base.files import whole_file
from gtx.fast.atom_properties import PARAMETERS, RADII, charges, crippen, find_neighbours, surfaces
from gtx.fast.descriptors import properties, quantum_numbers, surface_by_range
from gtx.fast.graphs import Graphs, binary
from gtx.kernel import DescriptorKernel, TanimotoKernel, solve_kernel_ridge
from gtx.kernel.regression import DESCRIPTOR_TERMS, DescriptorTerm
from gtx.kernel.ridge import draw
from gtx.molecules import DESCRIPTOR_NAMES, Featuriser, read_smiles
from gtx.molecules.descriptors import PROPERTY_NAMES
from gtx.molecules.graphs import ATOM_FEATURE_VALUES, BOND_FEATURE_VALUES, assign_stereo_labels, quietly
from gtx.molecules.perception import featurise_texts, featurise_with_rdkit

PAGE, FOUND = RESULTS / "descriptors.md", ROOT / "runs" / "descriptors.json"
GROUPS = {
    "weight and acceptors": PROPERTY_NAMES[:4],
    "donors, amides": PROPERTY_NAMES[4:7],
    "rings": PROPERTY_NAMES[7:17],
    "Labute ASA": PROPERTY_NAMES[17:18],
    "TPSA": PROPERTY_NAMES[18:19],
    "chi and kappa": PROPERTY_NAMES[19:],
    "logP and MR": DESCRIPTOR_NAMES[25:27],
    **{
        name: tuple(d for d in DESCRIPTOR_NAMES if d.startswith(name))
        for name in ("SlogP_VSA", "SMR_VSA", "PEOE_VSA", "MQN")
    },
}
"""Descriptors by what computes them."""
ELEMENTS = {"atoms": [0], "bonds": [0]}
ALTERNATIVES = (
    [{"radius": 2, **ELEMENTS}],
    [{"radius": 3, **ELEMENTS}, {"radius": 1}],
)  # those of `gtx.models.kernel_ridge`
SURFACES = ("SlogP_VSA", "SMR_VSA", "PEOE_VSA")
PROPERTIES = ("weight and acceptors", "donors, amides", "rings", "Labute ASA", "TPSA", "chi and kappa")
TOGETHER = (
    SURFACES,
    ("logP and MR", "SlogP_VSA", "SMR_VSA"),
    ("PEOE_VSA", "MQN"),
    (*SURFACES, "MQN"),
    PROPERTIES,
    ("logP and MR", *SURFACES),
)
"""Groups that could go together, as they share a computation."""
ALL, ALL_CODES, COSTS = "all", "all codes", "costs"
MOST, MOLECULES, TURNS = 500, 256, 5  # training rows; molecules and turns that are timed
SPLITS = {f"{folder} {i}": (folder, i) for folder in available() for i in range(len(SETS[folder].splits))}
CODES = {
    "CIP labels": ("chirality", "stereo"),
    "hybridisation": ("hybridisation",),
    "rings of atoms and bonds": ("ring",),
    "conjugation": ("conjugated",),
}
"""Columns of the codes of atoms and bonds."""
METHODS = {"kernel": "kernel", "left_out": "kernel, rows left out", "ridge": "ridge regression"}
HEAD = """# Which descriptors earn their keep

gtx computes 105 descriptors of a molecule. Each line leaves some groups out of all. The *difference* is the mean
logarithm of the error over that with all descriptors, with its 95% interval (t, sets): above 0 the descriptors help. An
error is an RMSE, or 1 - ROC-AUC, of the validation rows; of several splits the mean counts. *Rows left out* are the
training rows, each predicted by all others.

The kernel is that of `gtx train`, without a network; its substructures, share and length are those that leave-one-out
prefers with all descriptors, its ridge is chosen anew. All methods learn from at most 500 training rows of each of 21
sets: 15 of MoleculeACE, four scaffold splits of MoleculeNet, two of the Molecule Attention Transformer with six splits.

This is a screen: kernels of few rows, several comparisons on the same validation rows, and no network. A group that it
lets go must not be missed by the network either before gtx drops it. No group has been dropped. The command adds the
lines that are not here yet.

    python -m experiments.descriptors
    python -m experiments.descriptors --costs
"""


class Rows:
    """Training rows of a split, at most so many, drawn at random, and its validation rows."""

    def __init__(self, run: Run, most: int) -> None:
        split, self.run = run.dataset.split, run
        train = split["train"][~np.isnan(run.dataset.y[split["train"], 0])]
        self.train, self.val = train[draw(len(train), most).numpy()], split["val"]
        self.y, self.descriptors = run.dataset.y[self.train], run.dataset.store.descriptors

    def similar(self, labels: list[dict]) -> tuple[Tensor, Tensor]:
        """Compare substructures of training rows with each other, and of validation rows with them."""
        store, kernel = self.run.dataset.store, TanimotoKernel(labels)
        kernel.set_references(store.subset(self.train))
        return kernel.compare_references(), kernel.similarity(store.batch(torch.from_numpy(self.val)))

    @cached_property
    def chosen(self) -> tuple[list[dict], DescriptorTerm]:
        """Substructures, share and length that leave-one-out prefers with all descriptors."""
        y = torch.from_numpy(self.y).double()
        part = self.part(self.descriptors[self.train].double())
        errors = {}
        for i, labels in enumerate(ALTERNATIVES):
            similar = self.similar(labels)[0]
            for term in DESCRIPTOR_TERMS:
                kernel = similar.lerp(part.gram(term.length), term.share)
                off = solve_kernel_ridge(kernel, torch.arange(len(y)), y).left_out - y
                errors[i, term] = float(off.square().mean())
        i, term = min(errors, key=errors.__getitem__)
        return ALTERNATIVES[i], term

    @cached_property
    def substructures(self) -> tuple[Tensor, Tensor]:
        """`similar` of the chosen substructures."""
        return self.similar(self.chosen[0])

    def part(self, train: Tensor) -> DescriptorKernel:
        """Make the kernel of some descriptors, from those of the training rows."""
        found = DescriptorKernel(train.shape[1])
        found.scaler.observe(train)
        found.set_references(train)
        return found

    def of_kernel(self, similar: tuple[Tensor, Tensor], columns: list[int]) -> dict[str, float]:
        """Compute errors of the kernel with some of the descriptors, on validation rows and on rows left out."""
        (share, length), y = self.chosen[1], torch.from_numpy(self.y).double()
        kernel, to_val = similar
        if columns:
            values = self.descriptors[:, columns].double()
            part = self.part(values[self.train])
            part.length.fill_(length)
            kernel, to_val = kernel.lerp(part.gram(length), share), to_val.lerp(part(values[self.val]), share)
        found = solve_kernel_ridge(kernel, torch.arange(len(y)), y)
        left_out = float((found.left_out - y).square().mean().sqrt())
        return {"kernel": self.error(found.centre + to_val @ found.dual), "left_out": left_out}

    def of_columns(self, columns: list[int]) -> dict[str, float]:
        """Compute errors of the kernel with some of the descriptors, and of ridge regression on them alone."""
        found = self.of_kernel(self.substructures, columns)
        values = self.descriptors[:, columns].double()
        part = self.part(values[self.train])
        train, val = (part.z_scores(values[rows]).numpy() for rows in (self.train, self.val))
        ridge = RidgeCV(np.logspace(-2, 4, 13)).fit(train, self.y[:, 0])
        return found | {"ridge": self.error(ridge.predict(val).reshape(-1, 1))}

    def of_codes(self, left_out: tuple[str, ...]) -> dict[str, float]:
        """Compute errors of the kernel of all codes at atoms and their neighbours, without some columns."""
        columns = {"atoms": ATOM_FEATURE_VALUES, "bonds": BOND_FEATURE_VALUES}
        kept = {k: [i for i, name in enumerate(names) if name not in left_out] for k, names in columns.items()}
        labels = [{"radius": 3, **ELEMENTS}, {"radius": 1, **kept}]
        return self.of_kernel(self.similar(labels), list(range(len(DESCRIPTOR_NAMES))))

    def error(self, predicted: Tensor | np.ndarray) -> float:
        """Compute the error of predictions of the validation rows."""
        return error(self.run.dataset.y[self.val], np.asarray(predicted), self.run)


def apply(function: Callable[[Chem.Mol], object], forms: list[bytes]) -> None:
    """Apply a function to molecules that are made of RDKit's binary form, so that nothing is kept from before."""
    for form in forms:
        function(Chem.Mol(form))


def costs() -> dict[str, tuple[float, float]]:
    """Measure processor time in µs a molecule, case by case in turns: compiled, and by RDKit's functions."""
    texts = [text for name in ("scaffold-esol", "scaffold-bbbp") for text in Run(SETS[name], "kernel").dataset.smiles]
    texts = texts[:: len(texts) // MOLECULES][:MOLECULES]
    forms = [binary(read_smiles(text)) for text in texts]
    forms = [form for form in forms if Graphs.read([form])[0]]
    graphs = Graphs.read(forms)[1]
    near, (surface, areas) = find_neighbours(graphs), surfaces(graphs, RADII)
    value = crippen(graphs, near)[0]
    compiled: dict[str, Callable[[], object]] = {
        "properties": lambda: properties(graphs, near, areas),
        "logP and MR": lambda: crippen(graphs, near),
        "SlogP_VSA": lambda: surface_by_range(graphs.atom_ptr, value, surface, np.linspace(-0.4, 0.6, 11)),
        "PEOE_VSA": lambda: charges(graphs, PARAMETERS),
        "MQN": lambda: quantum_numbers(graphs, near),
        "surface of atoms": lambda: surfaces(graphs, RADII),
        "neighbours": lambda: find_neighbours(graphs),
    }
    ask = {name: rd.Properties(GROUPS[name]) for name in PROPERTIES} | {"properties": rd.Properties(PROPERTY_NAMES)}
    plain: dict[str, Callable[[Chem.Mol], object]] = {
        **{name: each.ComputeProperties for name, each in ask.items()},
        "logP and MR": rd._CalcCrippenContribs,  # noqa: SLF001
        "SlogP_VSA": rd.SlogP_VSA_,
        "SMR_VSA": rd.SMR_VSA_,
        "PEOE_VSA": rd.PEOE_VSA_,
        "MQN": rd.MQNs_,
        "CIP labels": assign_stereo_labels,
        "copying": lambda mol: mol,
    }
    cases: dict[tuple[str, int], Callable[[], object]] = {(name, 0): case for name, case in compiled.items()}
    for name, function in plain.items():
        cases[name, 1] = partial(apply, function, forms)
    readers = {"reading": Featuriser(), "reading without descriptors": Featuriser(descriptors=False)}
    for name, featuriser in readers.items():
        cases[name, 0] = partial(featurise_texts, featuriser, texts, smiles=False)
        cases[name, 1] = partial(featurise_with_rdkit, featuriser, texts, None, False)
    took = defaultdict(list)
    for _ in range(TURNS + 1):  # the first turn compiles
        for key, case in cases.items():
            start = time.process_time()
            case()
            took[key].append((time.process_time() - start) / len(forms) * 1e6)
    found = {key: statistics.median(each[1:]) for key, each in took.items()}
    for name in plain:  # "copying" last
        found[name, 1] -= found["copying", 1]
    return {name: (found.get((name, 0), 0.0), found.get((name, 1), 0.0)) for name, _ in found if name != "copying"}


class Scores:
    """Errors by candidate and split, computed when they are asked for and kept in a file."""

    def __init__(self, file: Path) -> None:
        self.file, self.found = file, json.loads(file.read_text()) if file.exists() else {}
        self.rows: dict[str, Rows] = {}

    def compute(self, candidate: str, errors: Callable[[Rows], dict[str, float]]) -> None:
        """Compute the errors of a candidate in the splits that lack them."""
        found = self.found.setdefault(candidate, {})
        for key, (folder, split) in SPLITS.items():
            if key not in found:
                if key not in self.rows:
                    self.rows[key] = Rows(Run(SETS[folder], "kernel", split), MOST)
                found[key] = errors(self.rows[key])
                with whole_file(self.file, "w") as file:
                    json.dump(self.found, file, indent=1)

    def without(self, dropped: tuple[str, ...]) -> None:
        """Compute the errors without some groups."""
        gone = {name for group in dropped for name in GROUPS[group]}
        columns = [i for i, name in enumerate(DESCRIPTOR_NAMES) if name not in gone]
        self.compute(" + ".join(dropped) or ALL, partial(Rows.of_columns, columns=columns))

    def difference(self, candidate: str, base: str, method: str) -> str:
        """Write the mean logarithm of the ratio of errors over sets; of several splits their mean."""
        one, other, by_set = self.found[candidate], self.found[base], defaultdict(list)
        for key, (folder, _) in SPLITS.items():
            by_set[folder].append(math.log(one[key][method] / other[key][method]))
        return mean_log_ratio([statistics.mean(each) for each in by_set.values()]).split(" |")[0]

    def page(self) -> str:
        """Write what is found of all splits."""
        whole = [name for name in self.found if name != COSTS and len(self.found[name]) == len(SPLITS)]
        groups = [name for name in whole if name not in (ALL, ALL_CODES, *CODES)]
        differences = [[name, *(self.difference(name, ALL, method) for method in METHODS)] for name in groups]
        lines = [HEAD, *markdown(f"left out | {' | '.join(METHODS.values())}", "lrrr", differences)]
        of_kernel = list(METHODS)[:2]
        differences = [
            [each, *(self.difference(each, ALL_CODES, m) for m in of_kernel)] for each in whole if each in CODES
        ]
        if differences:
            lines += ["", "Codes left out, of a kernel whose substructures of radius 1 have all codes otherwise:", ""]
            lines += markdown("left out | kernel | kernel, rows left out", "lrr", differences)
        if times := self.found.get(COSTS):
            lines += ["", "Processor time of a molecule in µs, the median of turns:", ""]
            cells = [[name, *(f"{each:.1f}" if each else "" for each in both)] for name, both in times.items()]
            lines += markdown("what | compiled | RDKit", "lrr", cells)
        return "\n".join([*lines, ""])


def main() -> None:
    """Compute the scores that are missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--costs", action="store_true", help="measure the processor time of each group, and no scores")
    parser.add_argument("--page", action="store_true", help="write the page alone")
    parser.add_argument("--out", type=Path, default=FOUND, help="scores, as they are found")
    args = parser.parse_args()
    scores = Scores(args.out)
    if args.costs:
        with quietly():
            scores.found[COSTS] = costs()
        args.out.write_text(json.dumps(scores.found, indent=1))
    elif not args.page:
        for dropped in ((), *TOGETHER, *((name,) for name in GROUPS)):
            scores.without(dropped)
        for name, columns in {ALL_CODES: (), **CODES}.items():
            scores.compute(name, partial(Rows.of_codes, left_out=columns))
    PAGE.write_text(scores.page())
    print(PAGE)


if __name__ == "__main__":
    main()
