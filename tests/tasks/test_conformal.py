from __future__ import annotations

import numpy as np

from gtx.tasks.conformal import conformal_half_width, conformal_interval


def test_the_interval_covers_what_it_promises() -> None:
    rng = np.random.default_rng(0)
    held_out, new = rng.standard_t(3, (2000, 1, 40)), rng.standard_t(3, (2000, 1, 500))
    half = np.stack([conformal_half_width(h.T, np.zeros_like(h.T)) for h in held_out])
    covered = np.abs(new[:, 0]) <= half
    assert abs(np.mean(covered) - 37 / 41) < 0.005  # on average ceil(41 * 0.9) / 41, whatever the distribution


def test_it_is_the_residual_of_the_corrected_rank_and_blanks_do_not_count() -> None:
    y = np.array([[float(i), np.nan if i > 9 else -i] for i in range(1, 20)])
    assert conformal_half_width(y, np.zeros_like(y)).tolist() == [18.0, 9.0]


def test_too_few_rows_give_no_bound() -> None:
    y = np.stack([np.arange(9.0), np.r_[np.arange(8.0), np.nan]], axis=1)
    assert conformal_interval(y, np.zeros_like(y)) == {"level": 0.9, "half_width": [8.0, None]}
