"""Writing 100 tokens greedily, with keys and values kept and with everything read again at every step.

    python -m experiments.speed.bench_decoding

A graph transformer reads molecules of ZINC-12k, and a decoder as wide writes one or 16 of them side by side: both of
the default size (128 channels, 8 heads, 4 layers), or, for one, of the paper's base setting (512, 8, 6). Weights are
untrained, and the end is forbidden, so that all texts get as long.
"""

from __future__ import annotations

from argparse import Namespace

import torch

from experiments.speed.harness import Topic, Work
from experiments.speed.measured import main, megabytes, rival_table
from experiments.speed.samples import featurised
from gtx.models import BASE, molecule_to_sequence
from gtx.molecules import Featuriser
from gtx.sequence import greedy
from gtx.sequence.sequences import END

TOKENS, VOCABULARY = 100, 40
MODELS = {"default": {}, "base": BASE}
FIGURES = {
    "per step": lambda record: f"{record['seconds'] / TOKENS * 1e3:.3g} ms",
    "peak memory": megabytes,
    "time over kept": None,
}
KEPT, REREAD = "kept", "read again"


def make_case(name: str, read: Namespace) -> Work:
    """A case, `<model> <rows> <way>`."""
    size, rows, way = name.split(" ", 2)
    featuriser, molecules = Featuriser(), featurised("zinc12k", int(rows))
    torch.manual_seed(0)
    sizes = {"atom_sizes": featuriser.atom_sizes, "bond_sizes": featuriser.bond_sizes}
    model = molecule_to_sequence(VOCABULARY, **sizes, **MODELS[size])
    with torch.no_grad():
        model.decoder.embedding.bias[END] = -1e9
    model = model.to(read.device).eval()
    batch = molecules.batch(torch.arange(len(molecules))).to(read.device)
    facts = {"model": size, "rows": int(rows), "tokens": TOKENS, "rival": f"{size} {rows} {KEPT}"}
    return Work({"all": lambda: greedy(model, batch, TOKENS, cached=way == KEPT)}, facts)


def case_groups(read: Namespace) -> list[list[str]]:
    """Both ways with each model."""
    sizes = [("default", 4)] if read.quick else [("default", 1), ("default", 16), ("base", 1)]
    return [[f"{model} {rows} {way}" for way in (KEPT, REREAD)] for model, rows in sizes]


TOPIC = Topic(
    "decoding",
    __doc__,
    make_case,
    case_groups,
    lambda records: [rival_table(records, f"Writing {TOKENS} tokens", ["model, molecules, keys and values"], FIGURES)],
)

if __name__ == "__main__":
    main(TOPIC)
