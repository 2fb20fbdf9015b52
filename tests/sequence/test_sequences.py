"""Ragged sequences: cut, taught and padded as the lists they stand for."""

from __future__ import annotations

import torch

from gtx.sequence import END_TOKEN, START_TOKEN, SequenceBatch

LISTS = [[5, 6, 7], [], [8], [9, 5]]
MADE = SequenceBatch.of(LISTS)


def test_lists_and_places() -> None:
    assert MADE.lists() == LISTS and len(MADE) == 4
    assert MADE.place.tolist() == [0, 1, 2, 0, 0, 1] and MADE.owner.tolist() == [0, 0, 0, 2, 3, 3]


def test_a_batch_takes_any_in_any_order() -> None:
    assert MADE.batch(torch.tensor([3, 0, 1, 0])).lists() == [LISTS[i] for i in (3, 0, 1, 0)]
    assert SequenceBatch.of([]).batch(torch.tensor([], dtype=torch.long)).lists() == []


def test_teaching_shifts_by_one() -> None:
    read, write = MADE.teacher_forced()
    assert read.lists() == [[START_TOKEN, *one] for one in LISTS]
    assert SequenceBatch(write, read.ptr).lists() == [[*one, END_TOKEN] for one in LISTS]


def test_padding() -> None:
    items, absent = MADE.padded()
    assert items.tolist() == [[5, 6, 7], [0, 0, 0], [8, 0, 0], [9, 5, 0]]
    assert (~absent).sum(1).tolist() == [3, 0, 1, 2] and not items[absent].any()
