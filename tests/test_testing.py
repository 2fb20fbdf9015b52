"""Parts that break a guarantee are caught by it, with a message that teaches."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.nn import global_add_pool

from gtx.attention import ScaledDotScore, Score
from gtx.base.errors import InputError
from gtx.data import MoleculeStore
from gtx.encodings import CategoricalFeatureSpec, ContinuousFeatureSpec, Encoding
from gtx.graph import CompleteGraph
from gtx.models import standard
from gtx.molecules import Featuriser
from gtx.nn import EdgeAttention
from gtx.settings import learned
from gtx.tasks import Regression, TargetScaler
from gtx.tasks.regression import NumberAnswers, NumberObjective
from gtx.testing import (
    GuaranteeError,
    check_attention,
    check_encoding,
    check_model,
    check_score,
    check_task,
    example_batch,
)
from tests.tables import molecules

# --- scores


class TwoForms(Score):
    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return (query * key).sum(-1)

    def pairs(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return 1.01 * self(query[:, :, None], key[:, None])


class AllHeads(Score):
    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return (query * key).sum((-2, -1))


class Idle(ScaledDotScore):
    def __init__(self) -> None:
        super().__init__()
        self.forgotten = nn.Parameter(torch.ones(3))


class Gaussian(Score):
    """A score with a weight per head, which names the number of heads or not."""

    def __init__(self, heads: int, named: bool) -> None:
        super().__init__(*[heads] * named)
        self.width = nn.Parameter(torch.zeros(heads))

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return -(query - key).square().sum(-1) * self.width.exp()


class Detached(Score):
    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return (query.detach() * key).sum(-1) + (query * key).mean(-1)


class OverTheBatch(nn.Module):
    def forward(self, score: Tensor, edge: Tensor | None, receivers: object) -> Tensor:
        return score.softmax(0)


def test_broken_scores() -> None:
    check_score(ScaledDotScore())
    check_score(Gaussian(4, named=True))
    for score, message in (
        (TwoForms(), r"edge list and complete graph agree: expected .* difference of .*docs/your-own.md"),
        (AllHeads(), r"one number per edge and head: expected \[5, 3\], got \[5\]"),
        (Gaussian(4, named=False), r"3 heads and 4 channels: .*RuntimeError.*super\(\).__init__\(heads, channels\)"),
        (Idle(), r"every parameter has a gradient: .*score.forgotten"),
        (Detached(), r"the gradient is that of the output: .*GradcheckError"),
        (ScaledDotScore, r"an instance of a class derived from Score"),
    ):
        with pytest.raises(GuaranteeError, match=message):
            check_score(score)


def test_a_broken_normaliser_and_a_layer_that_is_left_as_it_is() -> None:
    layer = EdgeAttention(12, 4, 3)
    check_attention(layer)
    assert layer(torch.ones(2, 12), torch.tensor([[0], [1]])).dtype == torch.float32
    layer = EdgeAttention(12, 4, 3, normaliser=OverTheBatch())
    with pytest.raises(GuaranteeError, match="edge list and complete graph agree"):
        check_attention(layer)
    with pytest.raises(TypeError, match=r"expected a layer with one width of input, got \(4, 5\)"):
        check_attention(EdgeAttention((4, 5), 4, 3))


# --- encodings


class OfPairs(Encoding):
    """A pair feature, computed by a function of x `[N, 1]` and the pairs."""

    pair = ContinuousFeatureSpec(1)

    def values(self, x: Tensor, sender: Tensor, receiver: Tensor) -> Tensor:
        return x[sender] - 2 * x[receiver]

    def forward(self, data: Batch, graph: CompleteGraph) -> tuple[None, Tensor]:
        return None, self.values(data.x[:, :1].float(), *graph.pair_index)


class ShareOfMolecule(OfPairs):
    """Reads which molecule each atom is of, and how many molecules there are."""

    def forward(self, data: Batch, graph: CompleteGraph) -> tuple[None, Tensor]:
        sender, _ = graph.pair_index
        total = global_add_pool(data.x[:, :1].float(), data.batch, data.num_graphs)
        return None, data.x[sender, :1] / total[data.batch[sender]]


def pairs_of(values: Callable[[Tensor, Tensor, Tensor], Tensor], **more: object) -> Encoding:
    """An encoding whose values are a function of x, senders and receivers."""
    return type("OfPairs", (OfPairs,), {"values": staticmethod(values), **more})()


def test_broken_encodings() -> None:
    check_encoding(OfPairs())
    check_encoding(ShareOfMolecule())
    reads_numbers = pairs_of(lambda x, sender, receiver: (sender - receiver).float().unsqueeze(1))
    check_encoding(reads_numbers, order_matters=True)
    declared = r"it yields what it declares: expected pair features of shape \[\d+, 2\], got \[\d+, 1\]"
    beyond = r"expected codes from 0 to less than \(4,\)"
    for encoding, message in (
        (OfPairs, "expected an instance, such as .*, got <class"),
        (pairs_of(lambda x, sender, receiver: x[sender], pair=ContinuousFeatureSpec(2)), declared),
        (pairs_of(lambda x, sender, receiver: x[sender].long(), pair=CategoricalFeatureSpec((4,))), beyond),
        (pairs_of(lambda x, sender, receiver: x[sender].long()), "pair features as real numbers, got torch.int64"),
        (reads_numbers, "renumbering the atoms renumbers the features: .*order_matters=True"),
        (
            pairs_of(lambda x, sender, receiver: x[sender] / (1 + x.sum())),
            "batch-mates do not matter: .* Only atoms and pairs of one molecule",
        ),
        (pairs_of(lambda x, sender, receiver: torch.zeros(len(sender), 1)), "it is computed where the batch lives"),
        (
            pairs_of(lambda x, sender, receiver: x[sender] / x.max()),
            "a batch without atoms yields nothing: .*docs/your-own.md",
        ),
        (
            pairs_of(lambda x, sender, receiver: (x[sender] + 0.123) @ torch.full((1, 1), 0.777, device=x.device)),
            "autocast costs no digits",
        ),
    ):
        with pytest.raises(GuaranteeError, match=message):
            check_encoding(encoding)
    drawn = pairs_of(lambda x, sender, receiver: x[sender] + torch.rand((), device=x.device), fixed=True)
    with pytest.raises(GuaranteeError, match="what is fixed is the same in a second call"):
        check_encoding(drawn, arbitrary=True)


# --- models


class Pooled(nn.Module):
    """A sum over the atoms of a function of their codes."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(len(Featuriser().atom_sizes), 2)

    def atoms(self, batch: Batch) -> Tensor:
        return self.lin(batch.x.float())

    def forward(self, batch: Batch) -> Tensor:
        return global_add_pool(self.atoms(batch), batch.batch, batch.num_graphs)


def pooled(change: Callable[[Tensor, Batch], Tensor]) -> Pooled:
    """A sum over the atoms of what a function makes of theirs."""
    return type("Pooled", (Pooled,), {"atoms": lambda self, batch: change(Pooled.atoms(self, batch), batch)})()


class MeanOfBonds(Pooled):
    def forward(self, batch: Batch) -> Tensor:
        bonds = torch.bincount(batch.batch[batch.edge_index[0]], minlength=batch.num_graphs)
        return super().forward(batch) / (bonds + (batch.num_graphs > 1)).unsqueeze(1)


class Counted(Pooled):
    def forward(self, batch: Batch) -> Tensor:
        return global_add_pool(self.atoms(batch), batch.batch)[: int(batch.batch.max()) + 1]


class Unused(Pooled):
    def __init__(self) -> None:
        super().__init__()
        self.forgotten = nn.Linear(1, 1)


class HiddenWeight(Pooled):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.rand(())

    def __deepcopy__(self, memo: dict) -> "HiddenWeight":
        copy = HiddenWeight()
        copy.load_state_dict(self.state_dict())
        return copy

    def atoms(self, batch: Batch) -> Tensor:
        return self.scale * super().atoms(batch)


def test_broken_models() -> None:
    check_model(Pooled())
    by_number = pooled(lambda out, batch: out * (torch.arange(len(out)) - batch.ptr[batch.batch]).unsqueeze(1))
    for model, message in (
        (by_number, "renumbering the atoms changes nothing: .*docs/your-own.md"),
        (pooled(lambda out, batch: out - out.mean(0)), "batch-mates do not matter: .*Norms over a batch"),
        (Counted(), "a batch without molecules: expected a result, got .*Error"),
        (MeanOfBonds(), "batch-mates do not matter|one atom: expected finite outputs, got NaN"),
        (Unused(), "every parameter has a finite gradient: .*forgotten.weight, forgotten.bias"),
        (HiddenWeight(), "a state dict holds all there is to the model"),
        (nn.Sequential(Pooled(), nn.Flatten(0)), r"one row per molecule: expected \[9, T\], got \[18\]"),
    ):
        with pytest.raises(GuaranteeError, match=message):
            check_model(model)
    with pytest.raises(GuaranteeError, match="rotation, mirror image and translation change nothing"):
        check_model(pooled(lambda out, batch: out + batch.pos[:, :1]), positions="known")


def test_molecules_that_a_featuriser_refuses_are_named_and_not_left_out() -> None:
    for featuriser, message in (
        (Featuriser(max_atoms=12), r"refuses CC\(=O\)Oc1ccccc1C\(=O\)O: has 13 atoms"),
        (Featuriser(reaction="reactants-products"), "is no reaction"),
    ):
        with pytest.raises(InputError, match=message):
            example_batch(featuriser)


def test_a_model_with_a_broken_score() -> None:
    read = Featuriser()
    sizes = {"atom_sizes": read.atom_sizes, "bond_sizes": read.bond_sizes, "num_descriptors": read.num_descriptors}
    model = standard(1, **sizes, channels=16, layers=1, heads=2, score=TwoForms())
    with pytest.raises(GuaranteeError, match="GraphTransformer: edge list and complete graph agree"):
        check_model(model)


# --- tasks


class WrongScale(NumberObjective):
    def unscale(self, output: Tensor, store: object = None) -> Tensor:
        return -10 * super().unscale(output, store)


class BlankTeaches(NumberObjective):
    def mean_loss(self, output: Tensor, examples: Batch) -> Tensor:
        return (output - examples.y.nan_to_num()).square().mean()


class Infinite(NumberObjective):
    def mean_loss(self, output: Tensor, examples: Batch) -> Tensor:
        return super().mean_loss(output, examples) + output.log().sum()


class Forgets(Regression):
    def to_dict(self) -> dict:
        return {name: value for name, value in super().to_dict().items() if name != "scaler"}


class Extra(NumberAnswers):
    def output_columns(self, taken: object, members: int = 1) -> dict[str, type]:
        return {**super().output_columns(taken, members), "more": float}


class Refits(NumberObjective):
    def fit(self, train: MoleculeStore) -> dict:
        return {"scaler": TargetScaler.fit(train.y)}


def learning(part: str, kind: type) -> type[Regression]:
    """Regression with another class for one of its parts."""

    def made(task: Regression) -> object:
        return kind(task)

    return type(kind.__name__, (Regression,), {part: property(made)})


def test_broken_tasks() -> None:
    frame = molecules(30)
    table = {"smiles": frame.smiles.tolist(), "gap": frame.gap.tolist(), "dipole": frame.dipole.tolist()}
    table["gap"][3] = table["dipole"][3] = table["gap"][4] = ""
    check_task(Regression(["gap", "dipole"]), table)
    for kind, message in (
        (
            learning("objective", WrongScale),
            "minimising the loss improves the scores: .*`unscale`.*docs/your-own-task.md",
        ),
        (learning("objective", BlankTeaches), "a blank target teaches nothing"),
        (learning("objective", Infinite), "the loss and its gradient are finite"),
        (learning("objective", Refits), "a fitted task is returned as it is: .*others"),
        (Forgets, "the header of a model file gives the task back"),
        (learning("answers", Extra), "answers fit their columns: expected"),
    ):
        with pytest.raises(GuaranteeError, match=message):
            check_task(kind(["gap", "dipole"]), table)
    with pytest.raises(GuaranteeError, match=r"cells become targets: .*nothing"):
        check_task(Regression("nothing"), table)


def test_what_a_task_learns_needs_a_dataclass() -> None:
    class Bare(Regression):
        most: float = learned()

    with pytest.raises(TypeError, match=r"Bare.most is a field: write @dataclass\(frozen=True\) above class Bare"):
        Bare("gap")
