"""Sequences: tokens, vocabularies, decoding, training."""

import math
from dataclasses import replace
from itertools import combinations_with_replacement, product
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from gtx.base.errors import InputError
from gtx.data import MoleculeStore, featurise
from gtx.models import standard
from gtx.sequence.model import GeneratedSequence, MoleculeToSequenceModel, beam_search, greedy_search
from gtx.sequence.sequences import (
    CHARACTER_TOKENIZER,
    END_TOKEN,
    SMILES_TOKENIZER,
    START_TOKEN,
    SequenceBatch,
    SequenceDataset,
    TokenVocabulary,
)
from gtx.sequence.task import SequenceGenerationTask, count, metrics
from gtx.training import TrainSettings, fit
from tests.molecules_for_tests import CODE_SIZES, SMILES
from tests.tables import read
from tests.training.task import FEATURISER
from tests.training.task import SMILES as TAUGHT

# --- Ragged sequences: cut, taught and padded as the lists they stand for.


LISTS = [[5, 6, 7], [], [8], [9, 5]]
MADE = SequenceBatch.of(LISTS)


def lists(batch: SequenceBatch) -> list[list[int]]:
    return [part.tolist() for part in batch.items.split(batch.sizes.tolist())]


def test_a_batch_takes_any_in_any_order() -> None:
    assert lists(MADE.subset(torch.tensor([3, 0, 1, 0]))) == [LISTS[i] for i in (3, 0, 1, 0)]
    assert lists(SequenceBatch.of([]).subset(torch.tensor([], dtype=torch.long))) == []


def test_teaching_shifts_by_one() -> None:
    read, write = MADE.teacher_forced()
    assert lists(read) == [[START_TOKEN, *one] for one in LISTS]
    assert lists(SequenceBatch(write, read.ptr)) == [[*one, END_TOKEN] for one in LISTS]


# --- Tokens side by side are the text; what is no token is told.


def test_tokens_of_a_reaction_and_characters() -> None:
    text = r"Cl/C=C\Br.[13C@@H-]%12=#:1>>c1nn[nH]c1*"
    expected = r"Cl / C = C \ Br . [13C@@H-] %12 = # : 1 > > c 1 n n [nH] c 1 *"
    assert SMILES_TOKENIZER.split(text) == expected.split()
    assert CHARACTER_TOKENIZER.split("12+3\n") == ["1", "2", "+", "3", "\n"]


def test_round_trip_of_all_of_zinc(shared_data: Path) -> None:
    path = shared_data / "zinc12k" / "zinc12k.csv"
    if not path.is_file():
        pytest.skip(f"real data not at hand: no {path.name}")
    smiles = [row["smiles"] for row in read(path)]
    assert len(smiles) == 12000
    assert all("".join(SMILES_TOKENIZER.split(one)) == one for one in smiles)


def test_what_is_no_token_is_told() -> None:
    for text, said in (
        ("CXC", "got 'X' at character 2 of 'CXC'"),
        ("CC[N", "got '\\[' at character 3"),
        (" C", "got ' ' at character 1"),
    ):
        with pytest.raises(InputError, match=said):
            SMILES_TOKENIZER.split(text)


# --- Texts to numbers and back; what cannot be is told row by row.


VOCABULARY = TokenVocabulary.of(SMILES)


def test_round_trip_and_no_token_is_start_or_end() -> None:
    for smiles in SMILES:
        numbers = VOCABULARY.encode(smiles)
        assert VOCABULARY.decode(numbers) == smiles
        assert {START_TOKEN, END_TOKEN}.isdisjoint(numbers) and max(numbers) < len(VOCABULARY)
    with pytest.raises(InputError, match=r"^not in the vocabulary of \d+ tokens: 'Br', '\[Se\]'$"):  # each once
        VOCABULARY.encode("CBr[Se]CBr")
    with pytest.raises(ValueError, match="got 1"):
        VOCABULARY.decode([3, END_TOKEN])


# --- Greedy and beam search, of a model whose probabilities are written down.


V, LIMIT = 5, 4


class Table:
    """Logits of the next token by the source and the last two tokens."""

    device = torch.device("cpu")

    def __init__(self, sources: int = 3, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.logits = 2 * torch.randn(sources, V, V, V, generator=generator, dtype=torch.float64)
        self.steps = 0

    def begin(self, source: Tensor, limit: int) -> "Table":
        self.source, self.rows, self.left = source, len(source), limit
        self.before = torch.full((self.rows,), START_TOKEN)
        self.last = self.before
        return self

    def step(self, tokens: Tensor) -> Tensor:
        assert len(tokens) == self.rows and self.left > 0
        self.steps, self.left = self.steps + 1, self.left - 1
        self.before, self.last = self.last, tokens
        return self.logits[self.source, self.before, self.last].clone()

    def select(self, rows: Tensor) -> None:
        self.source, self.before, self.last = self.source[rows], self.before[rows], self.last[rows]
        self.rows = len(rows)

    def log_probability(self, source: int, tokens: list[int], ended: bool) -> float:
        logits = self.logits[source].clone()
        logits[..., START_TOKEN] = -torch.inf
        log_p, path = logits.log_softmax(-1), [START_TOKEN, START_TOKEN, *tokens] + [END_TOKEN] * ended
        return float(sum(log_p[tuple(path[i : i + 3])] for i in range(len(path) - 2)))


EVERY = torch.arange(3)


def every_sequence() -> list[list[int]]:
    return [list(one) for n in range(LIMIT + 1) for one in product(range(2, V), repeat=n)]


def check(table: Table, source: int, one: GeneratedSequence) -> None:
    assert len(one.tokens) <= LIMIT and {START_TOKEN, END_TOKEN}.isdisjoint(one.tokens)
    assert one.ended or len(one.tokens) == LIMIT
    assert one.log_probability == pytest.approx(table.log_probability(source, one.tokens, one.ended))


@pytest.mark.parametrize("seed", range(2))
def test_greedy_takes_the_likeliest_at_every_step(seed: int) -> None:
    table = Table(seed=seed)
    for source, one in enumerate(greedy_search(table, EVERY, LIMIT)):
        check(table, source, one)
        logits = table.logits[source].clone()
        logits[..., START_TOKEN] = -torch.inf
        path = [START_TOKEN, START_TOKEN, *one.tokens] + [END_TOKEN] * one.ended
        assert all(int(logits[path[i], path[i + 1]].argmax()) == path[i + 2] for i in range(len(path) - 2))


def test_greedy_stops_when_all_have_ended() -> None:
    table = Table()
    table.logits[..., END_TOKEN] = 99.0
    assert [one.tokens for one in greedy_search(table, EVERY, 100)] == [[]] * 3 and table.steps == 1


@pytest.mark.parametrize("penalty", [0.0, 0.6, 2.0])
def test_a_beam_wide_enough_finds_the_best_of_all(penalty: float) -> None:
    table = Table()
    for source, found in enumerate(beam_search(table, EVERY, LIMIT, width=(V - 2) ** LIMIT, penalty=penalty)):
        p = {tuple(s): table.log_probability(source, s, True) for s in every_sequence()}
        score = {s: log_p / ((5 + len(s) + 1) / 6) ** penalty for s, log_p in p.items()}
        best = sorted(score, key=lambda s: -score[s])[:10]
        assert [tuple(one.tokens) for one in found[:10]] == best
        assert [one.score for one in found[:10]] == pytest.approx([score[s] for s in best])


def test_what_the_limit_cuts_off_says_so() -> None:
    table = Table()
    table.logits[..., END_TOKEN] = -torch.inf
    for source, one in enumerate(greedy_search(table, EVERY, LIMIT)):
        assert not one.ended
        check(table, source, one)
    for source, found in enumerate(beam_search(table, EVERY, LIMIT, 2)):
        assert len(found) == 2
        for one in found:
            assert not one.ended
            check(table, source, one)


def test_a_model_without_numbers_writes_up_to_the_limit() -> None:
    table = Table()
    table.logits[0] = torch.nan
    for found in (greedy_search(table, EVERY, LIMIT), [best[0] for best in beam_search(table, EVERY, LIMIT, 2)]):
        assert len(found) == 3 and math.isnan(found[0].log_probability) and not found[0].ended
        assert len(found[0].tokens) == LIMIT and not math.isnan(found[1].log_probability)


def test_a_beam_without_width_is_refused_and_no_source_has_no_sequence() -> None:
    with pytest.raises(ValueError, match="width of at least 1"):
        beam_search(Table(), EVERY, LIMIT, width=0)
    assert greedy_search(Table(), EVERY[:0], LIMIT) == [] == beam_search(Table(), EVERY[:0], LIMIT)


# --- Teacher forcing learns, goes on where it was stopped, and weighs every token alike.


SETTINGS = TrainSettings(epochs=8, lr=1e-2, batch_molecules=16, threads=1, progress=False, accelerator="cpu", ema=0.9)
SMALL = {"channels": 16, "layers": 1, "heads": 2, "dropout": 0.0, "attention_dropout": 0.0}
PAIRS = ["".join(pair) for pair in combinations_with_replacement("FNOS", 2)]


def numbered(smiles: list[str], texts: list[str], targets: list[str]) -> MoleculeStore:
    """Molecules whose targets are numbers of texts."""
    store = featurise(FEATURISER, smiles, workers=0).store
    return store.with_targets(np.array([[texts.index(target)] for target in targets], float))


def model(size: int) -> MoleculeToSequenceModel:
    torch.manual_seed(0)
    return MoleculeToSequenceModel(standard(1, **CODE_SIZES, **SMALL), size, **SMALL)


@pytest.mark.slow
def test_learns_and_says_so(tmp_path) -> None:
    """The two atoms that a carbon atom joins, sorted."""
    val = numbered([f"{one}C{other}" for one, other in PAIRS], PAIRS, PAIRS)
    train = val.subset(torch.arange(len(val)).repeat(30))
    task = SequenceGenerationTask("text", texts=PAIRS).fit(train)
    made = model(task.objective.out_channels)
    (done,) = fit(made, task, train, val, SETTINGS, tmp_path)
    last = done.history[-1]
    assert done.model is made
    written = [task.vocabulary.decode(one.tokens) for one in greedy_search(made, val.batch(torch.arange(len(val))), 3)]
    right = sum(a == b for a, b in zip(written, PAIRS, strict=True)) / len(val)
    assert right > 0.9 and not made.training
    assert last["val_sequence_accuracy"] == pytest.approx(right, abs=0.05)
    assert last["val_loss"] < done.history[0]["val_loss"] and last["val_perplexity"] < 1.5
    assert [row["epoch"] for row in read(tmp_path / "members" / "0" / "log.csv")] == [str(i) for i in range(1, 9)]


def test_every_token_has_the_same_say() -> None:
    """The mean over steps is the loss of all sequences, though some batches have more tokens."""
    texts = ["C" * (1 + i) for i in range(7)]
    targets = [texts[i % 7] for i in range(60)]
    train = numbered(targets, texts, targets)
    objective = SequenceGenerationTask("text", texts=texts).fit(train).objective
    made, examples = model(3).eval(), objective.examples(train)

    def mean_loss(index: Tensor) -> Tensor:
        batch = examples.batch(index)
        return objective.mean_loss(objective.forward(made, batch), batch)

    parts = torch.arange(60).split(17)
    usual = objective.share(examples) / len(parts)
    steps = [mean_loss(part) * objective.share(examples.batch(part)) / usual for part in parts]
    assert objective.share(examples) == sum(map(len, targets)) + 60
    torch.testing.assert_close(sum(steps) / len(steps), mean_loss(torch.arange(60)))


def test_training_observes_the_codes_of_atoms(tmp_path) -> None:
    train = numbered(TAUGHT, TAUGHT, TAUGHT)
    task = SequenceGenerationTask("text", texts=TAUGHT).fit(train)
    made, settings = model(task.objective.out_channels), replace(SETTINGS, epochs=2, batch_pairs=2000)
    (done,) = fit(made, task, train, train.subset(torch.arange(0)), settings, tmp_path)
    assert done.history[1]["train_loss"] < done.history[0]["train_loss"]
    assert not made.encoder.embedding.vocabularies.atoms.seen.all()


@pytest.mark.parametrize("option", [{"tokens": "words"}, {"max_tokens": 0}, {"smoothing": 1.5}])
def test_options_out_of_range_are_refused(option: dict) -> None:
    with pytest.raises(InputError, match=f"{next(iter(option))}: expected .*, got "):
        SequenceGenerationTask("text", **option)


def test_without_examples_there_is_nothing_to_learn(tmp_path) -> None:
    store = numbered(["C", "CC"], ["C", "CC"], ["C", "CC"])
    task = SequenceGenerationTask("text", texts=["C", "CC"]).fit(store)
    with pytest.raises(InputError, match="no training molecules"):
        fit(model(3), task, store.subset(torch.arange(0)), store, SETTINGS, tmp_path)
    with pytest.raises(ValueError, match="got 2 sources and 1 targets"):
        SequenceDataset.of(store, SequenceBatch.of([[2]]))


# --- Perplexity and accuracies, by hand and by adding up.


PTR = torch.tensor([0, 3, 4, 8])


def test_by_hand() -> None:
    p = torch.tensor([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.1, 0.1, 0.8], [0.5, 0.3, 0.2]] * 2, dtype=torch.float64)
    labels = torch.tensor([0, 1, 2, 1, 0, 1, 2, 0])
    scores = metrics(count(p.log() + 3.0, labels, PTR))
    product = 0.7 * 0.6 * 0.8 * 0.3 * 0.7 * 0.6 * 0.8 * 0.5
    assert scores["perplexity"] == pytest.approx(product ** (-1 / 8))
    assert scores["loss"] == pytest.approx(F.cross_entropy(p.log(), labels).item())
    assert scores["token_accuracy"] == 7 / 8 and scores["sequence_accuracy"] == pytest.approx(2 / 3)


def test_a_sequence_counts_the_same_in_any_batch() -> None:
    logits, labels = torch.randn(8, 5), torch.randint(5, (8,))
    first = count(logits[:4], labels[:4], torch.tensor([0, 3, 4]))
    last = count(logits[4:], labels[4:], torch.tensor([0, 4]))
    torch.testing.assert_close(torch.cat([first, last]), count(logits, labels, PTR))
