"""The first classical toy: read a string, write it again.

    python -m experiments.sequence.copying

trains on 10,000 random strings of 1 to 20 of the letters a to p, and tests on 1,000 others; the answer counts only as a
whole. Draws its learning curves to `experiments/results/sequence/copying.svg`.
"""

from __future__ import annotations

import random

from experiments.sequence.running import options
from experiments.sequence.toy import StringPairs, solve

LETTERS, LONGEST = "abcdefghijklmnop", 20


def copying(rows: int = 10_000, held_out: int = 1000, seed: int = 0) -> StringPairs:
    """So many strings for training, and others for validation and test."""
    draw = random.Random(seed)
    texts: dict[str, None] = {}
    while len(texts) < rows + 2 * held_out:
        texts["".join(draw.choices(LETTERS, k=draw.randint(1, LONGEST)))] = None
    strings = list(texts)
    draw.shuffle(strings)
    return StringPairs(strings, strings, held_out)


if __name__ == "__main__":
    read = options(__doc__, epochs=10).parse_args()
    solve("copying", {"copying": copying(read.rows or 10_000)}, read)
