"""Writing 100 tokens greedily, with keys and values kept and with everything read again at every step.

A graph transformer reads molecules of ZINC-12k, and a decoder as wide writes one or 16 of them side by side: both of
the default size (128 channels, 8 heads, 4 layers), or, for one, of the paper's base setting (512, 8, 6). Weights are
untrained, and the end is forbidden, so that all texts get as long.
"""

from __future__ import annotations

from argparse import Namespace
from functools import partial

import torch

from experiments.speed.harness import Work
from experiments.speed.pages import megabytes, milliseconds
from experiments.speed.samples import featurised
from gtx.models import BASE, molecule_to_sequence
from gtx.molecules import Featuriser
from gtx.sequence import greedy
from gtx.sequence.sequences import END

TOKENS, VOCABULARY = 100, 40
MODELS = {"default": {}, "base": BASE}
FIGURES = {"per step": partial(milliseconds, count=TOKENS), "peak memory": megabytes, "time over kept": None}
TABLE = f"Writing {TOKENS} tokens", ["model, molecules, keys and values"], FIGURES
KEPT, REREAD = "kept", "read again"


def groups(options: Namespace) -> list[list[str]]:
    sizes = [("default", 4)] if options.quick else [("default", 1), ("default", 16), ("base", 1)]
    return [[f"{model} {rows} {way}" for way in (KEPT, REREAD)] for model, rows in sizes]


def make(name: str, options: Namespace) -> Work:
    size, rows, way = name.split(" ", 2)
    codes, molecules = Featuriser(), featurised("zinc12k", int(rows))
    torch.manual_seed(0)
    model = molecule_to_sequence(VOCABULARY, atom_sizes=codes.atom_sizes, bond_sizes=codes.bond_sizes, **MODELS[size])
    with torch.no_grad():
        model.decoder.embedding.bias[END] = -1e9
    model = model.to(options.device).eval()
    batch = molecules.batch().to(options.device)
    facts = {"model": size, "rows": int(rows), "tokens": TOKENS, "rival": f"{size} {rows} {KEPT}"}
    return Work({"all": lambda: greedy(model, batch, TOKENS, cached=way == KEPT)}, facts)
