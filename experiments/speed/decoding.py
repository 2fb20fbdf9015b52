"""Writing 100 tokens greedily, with keys and values kept and with everything read again at every step.

    python -m experiments.speed.decoding

A graph transformer reads molecules of ZINC-12k, and a decoder as wide writes one or 16 of them side by side: both of
the default size (128 channels, 8 heads, 4 layers), or, for one, of the paper's base setting (512, 8, 6). Weights are
untrained, and the end is forbidden, so that all texts get as long.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from experiments.speed.cases import Work, options, race, serve
from experiments.speed.molecules import store
from experiments.speed.results import Table, megabytes, ratio, write
from gtx.models import BASE, molecule_to_sequence
from gtx.molecules import Featuriser
from gtx.sequence import greedy
from gtx.sequence.sequences import END

MODULE = "experiments.speed.decoding"
TOKENS, VOCABULARY = 100, 40
MODELS = {"default": {}, "base": BASE}
KEPT, REREAD = "kept", "read again"


def make(name: str, device: str = "cpu") -> Work:
    """A case, `<model> <rows> <way>`."""
    size, rows, way = name.split(" ", 2)
    featuriser, molecules = Featuriser(), store("zinc12k", int(rows))
    torch.manual_seed(0)
    sizes = {"atom_sizes": featuriser.atom_sizes, "bond_sizes": featuriser.bond_sizes}
    model = molecule_to_sequence(VOCABULARY, **sizes, **MODELS[size])
    with torch.no_grad():
        model.decoder.embedding.bias[END] = -1e9
    model = model.to(device).eval()
    batch = molecules.batch(torch.arange(len(molecules))).to(device)
    facts = {"model": size, "rows": int(rows), "tokens": TOKENS}
    return Work({"all": lambda: greedy(model, batch, TOKENS, cached=way == KEPT)}, facts)


def tables(records: Sequence[dict]) -> list[Table]:
    """Seconds of one step, and how much longer without what is kept."""
    found = {record["case"]: record for record in records}
    rows = []
    for case, record in found.items():
        if "failed" in record:
            rows.append([case, record["failed"], "", ""])
            continue
        kept = found.get(f"{record['model']} {record['rows']} {KEPT}")
        each = f"{record['seconds'] / TOKENS * 1e3:.3g} ms"
        rows.append([case, each, megabytes(record), ratio(record, kept)])
    columns = ["model, molecules, keys and values", "per step", "peak memory", "time over kept"]
    return [Table(f"Writing {TOKENS} tokens", columns, rows)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all, or be the process of one case."""
    read = options(__doc__, arguments)
    if read.case:
        return serve(lambda name: make(name, read.device), read)
    sizes = [("default", 4)] if read.quick else [("default", 1), ("default", 16), ("base", 1)]
    groups = [[f"{model} {rows} {way}" for way in (KEPT, REREAD)] for model, rows in sizes]
    records = [record for group in groups for record in race(MODULE, group, read)]
    write("decoding", __doc__, read, records, tables(records))


if __name__ == "__main__":
    main()
