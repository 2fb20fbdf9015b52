"""Molecules to sequences: neither the future nor batch-mates nor atom numbers matter; with a cache and without."""

import pytest
import torch
from torch import nn

from gtx.models import GraphTransformer, standard
from gtx.sequence.model import MoleculeToSequenceModel, beam_search, greedy_search
from gtx.sequence.sequences import END_TOKEN, START_TOKEN, SequenceBatch, TokenVocabulary
from tests.molecules_for_tests import CODE_SIZES, SMILES, renumbered, whole_batch

VOCABULARY = TokenVocabulary.of(SMILES)
TARGETS = VOCABULARY.encode_all(SMILES).sequences
READ, WRITE = TARGETS.teacher_forced()
SMALL = {"channels": 16, "layers": 2, "heads": 2, "hidden": 24}


def encoder() -> GraphTransformer:
    return standard(1, **CODE_SIZES, channels=12, layers=1, heads=2, pair_channels=4)


def model(**setting: object) -> MoleculeToSequenceModel:
    torch.manual_seed(0)
    made = MoleculeToSequenceModel(encoder(), len(VOCABULARY), **{**SMALL, **setting}).double().eval()
    for p in made.decoder.parameters():
        nn.init.normal_(p, std=0.3)  # so that what is written varies
    made.decoder.embedding.bias.data[END_TOKEN] = -2.0
    return made


@pytest.mark.parametrize("norm_first", [False, True])
def test_written_as_taught(norm_first: bool) -> None:
    """What is written token by token, with a cache whose rows leave, double and change places, has the probability that
    reading it at once gives: so no token sees the future."""
    made = model(norm_first=norm_first)
    greedy, beams = greedy_search(made, whole_batch(), 12), beam_search(made, whole_batch(), 12, width=3)
    for i, smiles in enumerate(SMILES):
        for one in (greedy[i], *beams[i]):
            read, labels = SequenceBatch.of([one.tokens]).teacher_forced()
            logits = made(whole_batch([smiles]), read).index_fill(1, torch.tensor([START_TOKEN]), -torch.inf)
            log_p = logits.log_softmax(-1)
            steps = len(labels) if one.ended else len(labels) - 1
            assert log_p.gather(1, labels[:, None])[:steps].sum().item() == pytest.approx(one.log_probability)
            if one is greedy[i]:
                assert log_p.argmax(1)[:steps].tolist() == labels[:steps].tolist()


def test_batch_mates_do_not_matter() -> None:
    made = model()
    together, written = made(whole_batch(), READ), greedy_search(made, whole_batch(), 8)
    for i, smiles in enumerate(SMILES):
        alone = made(whole_batch([smiles]), READ.subset(torch.tensor([i])))
        torch.testing.assert_close(alone, together[READ.ptr[i] : READ.ptr[i + 1]], rtol=0, atol=1e-10)
        assert greedy_search(made, whole_batch([smiles]), 8)[0].tokens == written[i].tokens


def test_numbers_of_atoms_do_not_matter() -> None:
    made, batch = model(), whole_batch()
    other, _ = renumbered(batch)
    torch.testing.assert_close(made(other, READ), made(batch, READ), rtol=0, atol=1e-6)  # random walks in float32


def test_the_molecule_and_the_order_of_read_tokens_matter() -> None:
    made = model()
    swapped = whole_batch([SMILES[1], SMILES[0], *SMILES[2:]])
    assert not torch.allclose(made(swapped, READ)[: READ.ptr[2]], made(whole_batch(), READ)[: READ.ptr[2]])
    methanol, orders = whole_batch(["CO"]), ([START_TOKEN, 2, 3, 4], [START_TOKEN, 3, 2, 4])
    one, two = (made(methanol, SequenceBatch.of([order]))[-1] for order in orders)
    assert not torch.allclose(one, two)


def test_every_weight_of_encoder_and_decoder_learns() -> None:
    made = model().train()
    nn.functional.cross_entropy(made(whole_batch(), READ), WRITE).backward()
    still = [n for n, p in made.named_parameters() if p.grad is None or not p.grad.any()]
    assert all(n.startswith(("encoder.readout", "encoder.head")) or "lin_key.bias" in n for n in still), still


def test_looks_are_weights_over_the_atoms_of_the_token_s_molecule() -> None:
    made, batch = model(), whole_batch()
    maps = made.attention(batch, READ)
    atom, token = maps.edge_index
    assert batch.batch[atom].equal(READ.owner[token]) and len(maps.weights) == 2
    torch.testing.assert_close(maps.logits, made(batch, READ))
    for weights in maps.weights:
        total = torch.zeros(len(READ.items), 2).double().index_add_(0, token, weights)
        torch.testing.assert_close(total, torch.ones_like(total))


def test_state_dict_round_trip_and_dropout_in_training_alone() -> None:
    made, other = model(), model(dropout=0.5)
    torch.manual_seed(1)
    other.load_state_dict(made.state_dict())
    assert other(whole_batch(), READ).equal(made(whole_batch(), READ))
    assert not other.train()(whole_batch(), READ).equal(made(whole_batch(), READ))


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="as many graphs, got"):
        model()(whole_batch(), READ.subset(torch.tensor([0])))
    with pytest.raises(ValueError, match="3 heads and 16 channels"):
        model(heads=3)
    with pytest.raises(ValueError, match="'relu' or 'gelu', got 'swish'"):
        model(activation="swish")
