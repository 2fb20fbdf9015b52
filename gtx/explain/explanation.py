"""Explanations of one prediction: what they have in common, and that by attention, beside random weights."""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.utils import to_dense_adj

from gtx.base.errors import InputError
from gtx.base.files import write_text
from gtx.data.rows import percent, plural
from gtx.explain.relevance import (
    AtomRemovalEffect,
    attention_rollout,
    average_attention_by_distance,
    gradient_weighted_attention,
    highest,
    measure_faithfulness,
    rank_correlation,
    shortest_path_lengths,
)
from gtx.explain.subject import Subject, copies, index, open_subject, predict_without
from gtx.models import GraphTransformer, MultiComponentModel, build_model
from gtx.models.composites import join_parts
from gtx.molecules import draw_attention, draw_molecule
from gtx.molecules.drawing import SCALE
from gtx.molecules.perception import Text
from gtx.prediction import Predictor

if TYPE_CHECKING:
    from rdkit.Chem import Mol

    from gtx.explain.figure import Sheet


def check_figure_name(path: str | Path) -> None:
    """Raise InputError unless a figure can be written to a file of that name."""
    if Path(path).suffix not in (".svg", ".html"):
        raise InputError(f"{path}: expected a file name that ends in .svg or .html")


PAGE_STYLE = """
body { margin: 1rem auto; max-width: 1100px; font: 14px sans-serif; color: #222; background: #fff; }
svg { max-width: 100%; height: auto; }
pre { font-size: 13px; white-space: pre-wrap; overflow-wrap: anywhere; }
"""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExplanationBase(ABC):
    """Explanation of a prediction, as lines of text and as a figure.

    Attributes:
        smiles: SMILES of the molecule, or of the molecules of the row, as given.
        molecules: RDKit molecules of the row, with the n atoms, one after the other.
        quantity: name of the predicted quantity.
        prediction: prediction for the target, in its unit; for classes the probability of class 1.
        notes: notes on the model and the molecule, for the reader.
        neighbours: lines of text about the most similar training molecules.
    """

    smiles: str
    molecules: tuple[Mol, ...]
    quantity: str
    prediction: float
    notes: list[str]
    neighbours: list[str]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.smiles}, {self.quantity} = {self.prediction:.4g})"

    @property
    def atoms(self) -> list[str]:
        """Symbol and number of each atom, as "O2"."""
        symbols = [atom.GetSymbol() for mol in self.molecules for atom in mol.GetAtoms()]
        return [f"{symbol}{number}" for number, symbol in enumerate(symbols)]

    def headline(self, blend: str | None = None, beside: str = "") -> list[str]:
        """Name the molecule and its prediction; for a blend, the prediction of the whole model first."""
        lines = [f"{self.smiles}: {plural(len(self.atoms), 'atom')}"]
        if blend is None:
            return [*lines, f"predicted {self.quantity}: {self.prediction:.4g}{beside}"]
        lines.append(f"{self.quantity}: {blend}")
        return [*lines, f"this explanation is of the network alone, which predicts {self.prediction:.4g}{beside}"]

    @abstractmethod
    def text(self) -> str:
        """Describe the result in lines of text."""

    @abstractmethod
    def svg(self) -> str:
        """Draw the whole figure as an SVG element."""

    def _repr_svg_(self) -> str:
        return self.svg()

    def save(self, path: str | Path) -> None:
        """Write the figure as `.svg`, or as `.html` a page with the figure and the text.

        Raises:
            InputError: the name ends in anything else, or RDKit cannot draw on this machine.
        """
        check_figure_name(path)
        svg = self.svg()
        page = (
            '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f"<title>{escape(self.smiles)}: {escape(self.quantity)}</title><style>{PAGE_STYLE}</style>"
            f"{svg}<pre>{escape(self.text())}</pre></html>\n"
        )
        write_text(Path(path), page if Path(path).suffix == ".html" else svg + "\n")


# --- The attention of one network for one molecule.


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AttentionAnalysis:
    """Analysis of the attention of one network for one molecule: attention weights, atom scores and removal tests.

    Changes are in the target's unit.

    Attributes:
        prediction: prediction for the target; for classes the probability of class 1.
        weights: float64 `[L, H, n, n]`, attention of every layer and head, receivers in rows; 0 where there is no edge.
        rollout: attention rollout of each atom (`attention_rollout`), float64 `[n]`, averaged over the
            nodes that the readout uses.
        gradient: gradient-weighted attention of each atom (`gradient_weighted_attention`), float64 `[n]`,
            averaged in the same way.
        faithfulness: for "rollout" and "gradient", the effect of removing the atoms with the highest scores, and of
            removing as many random ones (`measure_faithfulness`).
        without: change of the prediction when all attention is removed.
    """

    prediction: float
    weights: np.ndarray
    rollout: np.ndarray
    gradient: np.ndarray
    faithfulness: dict[str, list[AtomRemovalEffect]]
    without: float


def analyse(
    subject: Subject, model: GraphTransformer | MultiComponentModel, seed: int, draws: int
) -> AttentionAnalysis:
    """Run a network, in float64 on the CPU, on the row of a subject: its attention and the scores of its atoms."""
    with torch.enable_grad():
        parts = model.parts(copies(subject.store))
        maps = [part.encoder.attention(part.batch) for part in parts]
        output = model.head(join_parts([one.embedding for one in maps], model.width))[0, subject.column]
        slopes = [torch.autograd.grad(output, one.weights, retain_graph=True) for one in maps]
    starts = np.cumsum([0, *(one.num_nodes for one in maps)]).tolist()  # of the nodes of each part among all
    atoms = torch.empty(int(subject.store.sizes[0]), dtype=torch.long)
    for part, one, start in zip(parts, maps, starts, strict=False):
        atoms[part.atoms] = one.place + start

    def matrices(each: Sequence[Sequence[Tensor]]) -> Tensor:
        """Convert weights of edges, of each part and layer, to matrices `[L, H, n, n]`, receivers in rows."""
        dense = torch.zeros(len(each[0]), starts[-1], starts[-1], each[0][0].shape[1], dtype=torch.float64)
        for one, layers, start in zip(maps, each, starts, strict=False):
            own = slice(start, start + one.num_nodes)
            for layer, edges in enumerate(layers):
                found = to_dense_adj(one.edge_index, edge_attr=edges.detach(), max_num_nodes=one.num_nodes)
                dense[layer, own, own] = found[0]
        return dense.permute(0, 3, 2, 1)

    weights, gradients = matrices([one.weights for one in maps]), matrices(slopes)
    readers = torch.cat([one.readers + start for one, start in zip(maps, starts, strict=False)])
    relevance = {
        "rollout": attention_rollout(weights.mean(1)),
        "gradient": gradient_weighted_attention(weights, gradients),
    }
    scores = {name: matrix[readers].mean(0)[atoms].numpy() for name, matrix in relevance.items()}
    prediction = float(predict_without(subject, model, np.zeros((1, len(atoms)), bool))[0])

    def change(sets: np.ndarray) -> np.ndarray:
        return predict_without(subject, model, sets) - prediction

    return AttentionAnalysis(
        prediction=prediction,
        weights=weights[:, :, atoms][:, :, :, atoms].numpy(),
        **scores,
        faithfulness=measure_faithfulness(change, scores, draws=draws, seed=seed),
        without=float(change(np.ones((1, len(atoms)), bool))[0]),
    )


def random_model(subject: Subject, seed: int) -> GraphTransformer | MultiComponentModel:
    """Build the same architecture with untrained weights, in float64; fixed tensors (known codes, scales) are copied.

    The untrained network is the control of Adebayo et al. 2018 (arXiv:1810.03292): scores that random weights also give
    show nothing of what the network learned.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = build_model(subject.header.model).double().eval()
    learnt = dict(fresh.named_parameters())
    state = subject.model.state_dict()
    fresh.load_state_dict({name: learnt.get(name, value).detach().clone() for name, value in state.items()})
    if not isinstance(fresh, GraphTransformer | MultiComponentModel):
        raise TypeError(f"expected a graph transformer, got {type(fresh).__name__}")
    return fresh


# --- Attention, beside the same network with random weights.

CAVEAT = "Attention weights show the computation; they do not prove a cause."


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Explanation(AttentionAnalysis, ExplanationBase):
    """Explanation of a prediction by attention, compared with the same network with random weights.

    Attention weights show the computation of the network, and do not prove a cause.

    Attributes:
        distance: float64 `[n, n]`, bonds between atoms, infinite where nothing connects them.
        layer, head, receiver: layer, head and receiver in the figures, counted from 0; head None is the mean over
            heads.
        seed: seed of the random weights and of the random removals.
        random: analysis of the network with random weights.
        blend: the prediction of the whole model in words, if a kernel is blended with the network.
        smiles, molecules, quantity, prediction, notes, neighbours: as of `ExplanationBase`.
    """

    distance: np.ndarray
    layer: int
    head: int | None
    receiver: int
    seed: int
    random: AttentionAnalysis
    blend: str | None

    def shown(self, analysis: AttentionAnalysis | None = None) -> np.ndarray:
        """Return the attention of the chosen layer and head, `[n, n]`, of this network or of another analysis."""
        return select_attention((analysis or self).weights, self.layer, self.head)

    def agreement(self) -> dict[str, float]:
        """Compute Spearman's rank correlation of each score with that of random weights.

        It is NaN where either score is the same for all atoms, or n < 3.
        """
        return {
            "rollout": rank_correlation(self.rollout, self.random.rollout),
            "gradient": rank_correlation(self.gradient, self.random.gradient),
        }

    def svg(self) -> str:
        """Draw the figure as one SVG element: attention and scores of atoms, each also with random weights."""
        from gtx.explain.figure import open_sheet  # matplotlib is slow to import

        lines = [line for text in captions(self) for line in textwrap.wrap(text, LETTERS)]
        with open_sheet(WIDTH, END + 20 + LINE * len(lines)) as sheet:
            size = min(18, max(11, 1400 / len(self.smiles)))
            sheet.write(LEFT, 36, _short(self.smiles, 125), size=size, weight="bold")
            rows = product((draw_attention_row, draw_scores_row), (self, self.random))
            for row, (draw_row, analysis) in enumerate(rows):
                y, name = TOP + row * ROW, "Random weights" if analysis is self.random else "Trained"
                network = name if self.blend is None else f"{name}, the network alone"
                heading = f"{network}: {self.quantity} = {analysis.prediction:.4g}"
                sheet.write(LEFT, y + 14, _short(heading, 110), size=15)
                sheet.rule(LEFT, y + 24)
                draw_row(sheet, self, analysis, y + 48)
            for k, line in enumerate(lines):
                sheet.write(LEFT, END + 12 + LINE * k, line, size=12.5)
            return sheet.svg()

    def text(self) -> str:
        """Describe the result in lines of text."""
        random = f" (random weights: {self.random.prediction:.4g})"
        return "\n".join(
            [
                *self.headline(self.blend, random),
                f"drawn: {self.layer_name()}, counted from 0; receiver {self.atoms[self.receiver]}",
                "",
                f"{'atom':>6}  {'rollout':>9}  {'gradient':>9}",
                *(
                    f"{a:>6}  {r:>9.4f}  {g:>9.2e}"
                    for a, r, g in zip(self.atoms, self.rollout, self.gradient, strict=True)
                ),
                "",
                f"Removal test: the change of {self.quantity} when the attention to and from the k atoms with the",
                "highest scores is removed; the mean size of the change for k random atoms; and the share of random",
                "sets of k atoms that change the prediction less (chance: 50%):",
                "",
                *_removal_table("trained", self),
                "",
                *_removal_table("random weights", self.random),
                "",
                *(
                    f"{name}: rank correlation with random weights {rho:.2f}"
                    for name, rho in self.agreement().items()
                    if np.isfinite(rho)
                ),
                *(f"note: {note}" for note in self.notes),
                CAVEAT,
                *self.neighbours,
            ]
        )

    def layer_name(self) -> str:
        """Name the chosen layer and head, counted from 0."""
        layers, heads = self.weights.shape[:2]
        head = f"mean of {heads} heads" if self.head is None else f"head {self.head} of {heads}"
        return f"layer {self.layer} of {layers}, {head if heads > 1 else 'one head'}"


def _removal_table(name: str, analysis: AttentionAnalysis) -> Iterator[str]:
    yield f"{name:<15}  {'score':<8}  {'k':>3}  {'change':>10}  {'random, mean ± sd':>22}  change less"
    rows = [(score, effect) for score, table in analysis.faithfulness.items() for effect in table]
    for score, r in rows:
        random = f"{r.mean:.3g} ± {r.sd:.2g} ({len(r.random)})"
        yield f"{'':<15}  {score:<8}  {r.k:>3}  {r.change:>+10.3g}  {random:>22}  {percent(r.less):>11}"
    if not rows:
        yield f"{'':<15}  a single atom: nothing to compare with"
    yield f"{'':<15}  {'all atoms':<13}  {analysis.without:>+10.3g}"


def select_attention(weights: np.ndarray, layer: int, head: int | None) -> np.ndarray:
    """Select the attention `[n, n]` of a layer and head from `[L, H, n, n]`; for None, the mean over heads."""
    return weights[layer].mean(0) if head is None else weights[layer, head]


def explain_prediction(
    predictor: Predictor,
    smiles: Text,
    target: str | None = None,
    layer: int = -1,
    head: int | None = None,
    receiver: int | None = None,
    seed: int = 0,
    member: int = 0,
    draws: int = 50,
    features: Mapping[str, Any] | None = None,
) -> Explanation:
    """Explain a prediction by attention: pictures, a score for each atom, and a test of whether the scores are
    faithful.

    The computation runs on the CPU in float64, on any device of the predictor.

    Args:
        predictor: a trained model.
        smiles: SMILES of one molecule, or a mol block for a model that needs coordinates; for a model of several
            molecules a row, a tuple of their SMILES.
        target: name of the target; by default the first target.
        layer: layer whose attention is drawn, counted from 0; negative numbers count from the last layer.
        head: attention head that is drawn, counted from 0; by default the mean over heads.
        receiver: atom whose attention is drawn, in the order of the SMILES, counted from 0; by default the atom whose
            attention has the lowest entropy.
        seed: seed of the random weights and of the random removals.
        member: index of the network, from 0, in a model of several folds.
        draws: number of random removals for each number of atoms.
        features: values of the feature columns by name, numbers or lists of numbers.

    Raises:
        InputError: the molecule cannot be read, or the model writes sequences or has no such target, layer, head,
            receiver or member.
    """
    if draws < 1:
        raise InputError(f"draws: expected 1 or more, got {draws}")
    subject = open_subject(predictor, smiles, target, member, features)
    trained = analyse(subject, subject.model, seed, draws)
    layers, heads, n, _ = trained.weights.shape
    layer = index("layer", layer, layers)
    head = None if head is None else index("head", head, heads)
    if receiver is None:
        receiver = most_uneven(select_attention(trained.weights, layer, head))
    return Explanation(
        **vars(trained),
        smiles=subject.smiles,
        molecules=subject.molecules,
        distance=shortest_path_lengths(subject.store.bonds.numpy(), n),
        quantity=subject.header.quantity(subject.column),
        layer=layer,
        head=head,
        receiver=index("receiver", receiver, n, negative=False),
        seed=seed,
        random=analyse(subject, random_model(subject, seed), seed, draws),
        blend=subject.blend,
        notes=subject.notes,
        neighbours=subject.neighbours,
    )


def most_uneven(weights: np.ndarray) -> int:
    """Find the receiver whose attention `[n, n]` is farthest from even: of lowest entropy beside an even share's."""
    size = np.abs(weights)
    share = np.maximum(size / np.maximum(size.sum(1, keepdims=True), 1e-300), 1e-300)
    entropy, even = -(share * np.log(share)).sum(1), np.log(np.maximum((size > 0).sum(1), 1))
    return int(np.argmax(np.round(even - entropy, 9)))  # of equals, the first


# --- The figure of an explanation by attention: rows of panels.

CELL, GAP = (310, 268), 26  # a panel, and what lies between two; all in pixels
LEFT, TOP, ROW = 24, 62, 350  # the margin, where the rows begin, and their height
COLUMNS = tuple(LEFT + column * (CELL[0] + GAP) for column in range(3))
WIDTH, END = COLUMNS[-1] + CELL[0] + LEFT, TOP + 4 * ROW
MOST_NUMBERS = 50  # atoms that are numbered in a panel
LINE, LETTERS = 19, 150  # height of a line of a caption in pixels, and the most letters below the figure


def _short(text: str, letters: int) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def draw_attention_row(sheet: Sheet, e: Explanation, analysis: AttentionAnalysis, y: float) -> None:
    """Draw a row of panels: one atom's attention, every atom's, and attention by distance."""
    x, middle, right = COLUMNS
    sheet.write(x, y, f"Attention of atom {e.atoms[e.receiver]}", size=13, weight="bold")
    sheet.write(middle, y, "Attention of every atom", size=13, weight="bold")
    sheet.write(right, y, "Attention by distance", size=13, weight="bold")

    weights, n = e.shown(analysis), len(e.atoms)
    size = (CELL[0], CELL[1] - SCALE)
    both = [e.shown(of) for of in (e, e.random)]  # on one scale
    rows = [shown[e.receiver] for shown in both]
    ends = min(map(np.min, rows)), max(map(np.max, rows))
    numbers = n <= MOST_NUMBERS
    sheet.put(x, y + 8, draw_attention(e.molecules, weights, e.receiver, size=size, numbers=numbers, ends=ends))

    ends = min(map(np.min, both)), max(map(np.max, both))
    sheet.heat_map((middle + 50, y + 16, 204, 204), weights, e.atoms, ends)

    def by_distance(of: AttentionAnalysis) -> tuple[np.ndarray, np.ndarray]:
        """Average for each layer if the figure shows the mean over heads, else for each head."""
        return average_attention_by_distance(of.weights.mean(1) if e.head is None else of.weights[e.layer], e.distance)

    apart, means = by_distance(analysis)
    lines = [by_distance(of)[1] for of in (e, e.random)]
    ends = min(map(np.min, lines)), max(map(np.max, lines))
    chosen, name = (e.layer, "layer") if e.head is None else (e.head, "head")
    sheet.distances((right + 54, y + 16, CELL[0] - 62, 204), apart, means, chosen, f"{name} {chosen}", n, ends)


def draw_scores_row(sheet: Sheet, e: Explanation, analysis: AttentionAnalysis, y: float) -> None:
    """Draw a row of panels: two scores of the atoms, and the removal test of both."""
    numbers = len(e.atoms) <= MOST_NUMBERS
    titles = {"rollout": "Rollout", "gradient": "Gradient-weighted attention"}
    for x, (name, title) in zip(COLUMNS, titles.items(), strict=False):
        sheet.write(x, y, title, size=13, weight="bold")
        if analysis is e.random and np.isfinite(rho := e.agreement()[name]):
            sheet.write(x + CELL[0], y, f"ρ = {rho:.2f}", size=12, ha="right")
        scores, size = getattr(analysis, name), (CELL[0], CELL[1] - SCALE)
        ringed = highest(scores, min(3, len(scores) // 2)).tolist()
        sheet.put(x, y + 8, draw_molecule(e.molecules, scores, size=size, ringed=ringed, numbers=numbers))
    sheet.write(COLUMNS[2], y, "Removal test: attention of k atoms removed", size=13, weight="bold")
    sheet.removals((COLUMNS[2] + 54, y + 16, CELL[0] - 62, 150), analysis.faithfulness, analysis.without)


def captions(e: Explanation) -> list[str]:
    """Write the sentences under the figure, for a chemist."""
    remarks = [*e.notes] if e.blend is None else [f"this is the network alone; {e.blend}", *e.notes]
    notes = "".join(f" {remark[0].upper()}{remark[1:]}." for remark in remarks)
    apart = " ∞: no path of bonds connects the two atoms." if np.isinf(e.distance).any() else ""
    return [
        "Attention: every atom reads other atoms, each with its own weight. The pictures show the weights of "
        f"{e.layer_name()}, counted from 0. The ringed atom {e.atoms[e.receiver]} reads the shaded atoms.{apart}",
        "Rollout multiplies the attention of all layers; in every layer, half comes from the atom itself (Abnar & "
        f"Zuidema 2020). Gradient-weighted attention adds up the weights that raise {e.quantity}, each multiplied by "
        "how much it raises it (Chefer et al. 2021). Both give one score per atom; rings mark the highest scores.",
        "Removal test: the attention to and from the k atoms with the highest scores is removed, and the prediction "
        "changes (coloured lines). The grey band is the change for k random atoms (mean ± sd), the dotted line the "
        "change for all atoms. The percentages are the share of random sets that change the prediction less "
        "(chance: 50%).",
        "Random weights: the same network before training. Where its pictures look like those of the trained network, "
        "they show little of what the network learned. ρ is the rank correlation of its scores with the trained "
        f"network's. {CAVEAT}{notes}",
    ]
