"""The second classical toy: read a sum such as 417+385, write its value, digit by digit.

    python -m experiments.sequence.addition

trains on 50,000 of the 810,000 sums of two three-digit numbers, and tests on 1,000 others; the answer counts only as a
whole. The source is read as it is written, and in reversed order (583+714), as Sutskever et al. 2014 (arXiv:1409.3215)
found better for recurrent networks. Draws its learning curves to
`experiments/results/sequence/addition.svg`.
"""

from __future__ import annotations

import random

from experiments.sequence.running import options
from experiments.sequence.toy import StringPairs, solve


def addition(rows: int = 50_000, held_out: int = 1000, reverse: bool = False, seed: int = 0) -> StringPairs:
    """So many sums for training, and others for validation and test.

    Args:
        rows: of training.
        held_out: of validation, and of the test.
        reverse: read the sum from its end.
        seed: decides which sums.
    """
    sums = random.Random(seed).sample(range(900 * 900), rows + 2 * held_out)
    pairs = [(100 + each // 900, 100 + each % 900) for each in sums]
    sources = [f"{a}+{b}" for a, b in pairs]
    return StringPairs([s[::-1] for s in sources] if reverse else sources, [str(a + b) for a, b in pairs], held_out)


if __name__ == "__main__":
    read = options(__doc__, epochs=8).parse_args()
    rows = read.rows or 50_000
    solve("addition", {"as written": addition(rows), "reversed": addition(rows, reverse=True)}, read)
