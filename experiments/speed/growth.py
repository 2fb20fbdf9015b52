"""How time and memory grow with atoms per molecule and with molecules per batch.

    python -m experiments.speed.growth

Forward + backward of one attention layer (64 channels, 8 heads, a bias per head from 32 pair features) by gtx, by
padded `scaled_dot_product_attention` and by PyG's `TransformerConv` (its own function), and of the whole default model
on molecules that are chains. Atoms per molecule from 10 to 2,000, the batch holding about 2,000 atoms throughout (so
pairs grow with the atoms per molecule); and batches of 1 to 1,024 drug-like molecules of 9 to 38 atoms.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from experiments.speed import attentions, layer
from experiments.speed.cases import Work, options, race, serve
from experiments.speed.results import Table, folder, megabytes, milliseconds, write

MODULE = "experiments.speed.growth"
ATOMS, MOLECULES = (10, 20, 50, 100, 200, 500, 1000, 2000), (1, 4, 16, 64, 256, 1024)
IN_ALL = 2000
MODEL = "default model"
CONTENDERS = {
    "gtx layer": attentions.gtx_bias,
    "padded SDPA": attentions.padded_sdpa,
    "TransformerConv": attentions.transformer_conv,
}


def make(name: str, device: str = "cpu") -> Work:
    """A case, such as "atoms, 100, gtx layer" or "molecules, 64, default model"."""
    kind, number, contender = name.split(", ")
    if kind == "atoms":
        sizes = torch.full((IN_ALL // int(number),), int(number))
    else:
        sizes = torch.randint(9, 39, (int(number),), generator=torch.Generator().manual_seed(0))
    if contender == MODEL:
        return _model(sizes, device)
    made = layer.work(CONTENDERS[contender], sizes, 64, device=device)
    return Work({layer.BOTH: made.steps[layer.BOTH]}, made.facts)


def _model(sizes: Tensor, device: str) -> Work:
    from gtx.data import MoleculeStore
    from gtx.models import standard
    from gtx.molecules import Featuriser

    read = Featuriser()
    atoms, bonds = int(sizes.sum()), int((2 * (sizes - 1)).sum())
    ends = []
    for size in sizes.tolist():
        along = torch.stack([torch.arange(size - 1), torch.arange(1, size)])
        ends.append(torch.cat([along, along.flip(0)], 1))
    store = MoleculeStore(
        atoms=torch.ones(atoms, len(read.atom_sizes), dtype=torch.uint8),
        bonds=torch.cat(ends, 1).int(),
        bond_codes=torch.ones(bonds, len(read.bond_sizes), dtype=torch.uint8),
        descriptors=torch.zeros(len(sizes), read.num_descriptors),
        atom_ptr=torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]),
        bond_ptr=torch.cat([sizes.new_zeros(1), (2 * (sizes - 1)).cumsum(0)]),
    )
    torch.manual_seed(0)
    arguments = {"atom_sizes": read.atom_sizes, "bond_sizes": read.bond_sizes, "num_descriptors": read.num_descriptors}
    model = standard(1, **arguments).to(device)
    batch = store.batch(torch.arange(len(sizes))).to(device)

    def both() -> None:
        model(batch).sum().backward()
        model.zero_grad()

    return Work({layer.BOTH: both}, {"nodes": atoms, "pairs": int(sizes.square().sum())})


def tables(records: Sequence[dict]) -> list[Table]:
    """One per kind of growth."""
    titles = {"atoms": f"Atoms per molecule ({IN_ALL:,} atoms in all)", "molecules": "Molecules per batch"}
    made = []
    for kind, title in titles.items():
        rows = [
            [number, contender, milliseconds(record), megabytes(record)]
            for record in records
            for found, number, contender in [record["case"].split(", ")]
            if found == kind
        ]
        made.append(Table(title, [kind, "what", "time", "peak memory"], rows))
    return made


def plot(records: Sequence[dict], file: str) -> None:
    """Time and memory over size, both axes logarithmic; what failed ends its line."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    pyplot.rcParams["svg.hashsalt"] = "gtx"  # the same numbers give the same file
    figure, axes = pyplot.subplots(2, 2, figsize=(9, 6.5), sharex="col", layout="constrained")
    quantities = (("seconds", 1e3, "time, ms"), ("peak", 2**-20, "peak memory, MiB"))
    for column, (kind, words) in enumerate((("atoms", "atoms per molecule"), ("molecules", "molecules per batch"))):
        axes[1, column].set_xlabel(words)
        for row, (key, unit, label) in enumerate(quantities):
            axis = axes[row, column]
            for name in (*CONTENDERS, MODEL):
                cases = [(record["case"].split(", "), record) for record in records]
                points = [(int(c[1]), r[key] * unit) for c, r in cases if c[0] == kind and c[2] == name and key in r]
                axis.plot(*zip(*points, strict=True) if points else ([], []), marker="o", markersize=3, label=name)
            axis.set(xscale="log", yscale="log", ylabel=label)
            axis.grid(alpha=0.3)
    axes[0, 0].legend(frameon=False)
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all, or be the process of one case."""
    read = options(__doc__, arguments)
    if read.case:
        return serve(lambda name: make(name, read.device), read)
    sizes = {"atoms": (10, 100), "molecules": (1, 16)} if read.quick else {"atoms": ATOMS, "molecules": MOLECULES}
    cases = _groups(sizes)
    records = [record for group in cases for record in race(MODULE, group, read)]
    name = "growth.svg" if read.device == "cpu" else f"growth-{read.device}.svg"
    folder(read).mkdir(parents=True, exist_ok=True)
    plot(records, str(folder(read) / name))
    write("growth", __doc__, read, records, tables(records), pictures=[name])


def _groups(sizes: dict[str, Sequence[int]]) -> list[list[str]]:
    return [[f"{kind}, {n}, {name}" for name in (*CONTENDERS, MODEL)] for kind, ns in sizes.items() for n in ns]


if __name__ == "__main__":
    main()
