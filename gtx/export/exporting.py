"""Export of a model to ONNX, compared with the model on real molecules before the file is written."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gtx
from gtx.base.errors import InputError
from gtx.base.files import whole_file
from gtx.export.program import MoleculeProgram
from gtx.export.running import INPUTS, METADATA, ExportedModel, split_molecules
from gtx.models import GraphTransformer
from gtx.molecules.perception import featurise_texts
from gtx.prediction.foundation import FOUNDATION_MODEL
from gtx.prediction.loading import load_predictor
from gtx.prediction.predictor import Predictor
from gtx.tasks import Regression

PACKAGES = ("onnx", "onnxscript", "onnxruntime")
MOST_ATOMS, MOST_BONDS = 10_000, 40_000
"""Limits of torch's program; directed bonds."""
EXAMPLE = "CC(=O)Oc1ccccc1C(=O)O"
UNUSUAL = ("C", "[Na+].[Cl-]", "CO", "C" * 40, "C[C@H](N)C(=O)O.Cl", "F[C@@](Cl)(Br)I", "O=C1CCC/C=C\\CCC1")
"""Molecules of every check: one atom, no bonds, long distances, several fragments, stereochemistry."""
TRAINING_ROWS = 200
"""Maximum number of training rows of the model file that are checked."""
TOLERANCE = 1e-4
"""Largest difference from the model: a share of a target's standard deviation, or a probability."""


@dataclass(frozen=True)
class Export:
    """Outcome of an export."""

    columns: list[str]  # that are predicted
    checked: int  # number of molecules compared with the model
    difference: float  # the largest, in `unit`
    unit: str  # "standard deviations of the target" for numbers, "of a probability" for classes
    size: int  # of the file, in bytes


def export_model(
    model: Predictor, path: str | Path, molecules: Sequence[str] = (), show: Callable[[str], None] = lambda _: None
) -> Export:
    """Write a trained model to an ONNX file, which maps the arrays of a molecule to its predictions.

    Args:
        model: predictor of numbers or classes of molecules.
        path: path of the file, `.onnx`.
        molecules: SMILES to compare, in addition to `UNUSUAL` and training rows of the model file.
        show: function that is called with the description of each of the three stages when it begins.

    Raises:
        InputError: a module of the model cannot be exported, the predictions of file and model differ, the ending of
            the file name is wrong, or a package is missing. No file is written then.
    """
    if Path(path).suffix != ".onnx":
        raise InputError(f"expected a file that ends with .onnx, got {path}")
    if lacking := [name for name in PACKAGES if not find_spec(name)]:
        raise InputError(f'export needs {", ".join(lacking)}: pip install "gtx[export]"')
    program = make_program(model)
    about: dict[str, Any] = {
        "gtx": gtx.__version__,
        "columns": program.columns,
        "targets": model.header.targets,
        "units": model.header.units,
        "featuriser": model.header.featuriser.to_dict(),
    }
    show("1/3 tracing the model with torch")
    traced = trace(program, model)
    show("2/3 translating it to ONNX, which takes longest")
    written = _to_onnx(traced, about)
    rows = [] if model.header.training is None else list(model.header.training.smiles[:TRAINING_ROWS])
    smiles = [*UNUSUAL, *molecules, *rows]
    show(f"3/3 comparing the file with the model on {len(smiles):,} molecules")
    difference = _compare(ExportedModel(written), model, smiles)
    about["checked"] = {"molecules": len(smiles), "difference": difference}
    content = _with_metadata(written, about)
    with whole_file(path) as file:
        file.write(content)
    unit = "standard deviations of the target" if isinstance(model.task, Regression) else "of a probability"
    return Export(program.columns, len(smiles), difference, unit, len(content))


def make_program(model: Predictor) -> MoleculeProgram:
    """Make the module that is exported, on the CPU."""
    cpu = Predictor(model.members, model.header, "cpu", model.kernel_member)
    foundation = load_predictor(FOUNDATION_MODEL, "cpu").members[0]
    assert isinstance(foundation, GraphTransformer)
    return MoleculeProgram(cpu, foundation).eval()


def trace(program: MoleculeProgram, model: Predictor) -> torch.export.ExportedProgram:
    """Trace the program by `torch.export`, for any molecule of two atoms and a bond or more.

    Raises:
        InputError: a module of the model cannot be traced.
    """
    atoms, bonds = torch.export.Dim("atoms", max=MOST_ATOMS), torch.export.Dim("bonds", max=MOST_BONDS)
    flat = featurise_texts(model.header.featuriser, [EXAMPLE])
    example = tuple(map(torch.from_numpy, next(split_molecules(flat))))
    shapes = ({0: atoms}, {1: bonds}, {0: bonds}, None)
    try:
        with torch.no_grad(), _quietly():
            return torch.export.export(program, example, dynamic_shapes=shapes, strict=False)
    except Exception as reason:  # torch raises many kinds, and a module of a model may raise its own
        name = model.header.model["name"]
        raise InputError(f"{name} cannot be exported: torch cannot trace it for all sizes: {_line(reason)}") from reason


def _to_onnx(traced: torch.export.ExportedProgram, about: dict[str, Any]) -> bytes:
    try:
        with torch.no_grad(), _quietly():
            made = torch.onnx.export(traced, input_names=INPUTS, output_names=["answers"], verbose=False)
    except Exception as reason:  # an operation that ONNX lacks
        raise InputError(f"this model cannot be exported: ONNX lacks an operation: {_line(reason)}") from reason
    assert made is not None
    return _with_metadata(made.model_proto.SerializeToString(), about)


def _with_metadata(written: bytes, about: dict[str, Any]) -> bytes:
    """Set the description of the model in the bytes of an ONNX file."""
    import onnx

    proto = onnx.load_from_string(written)
    onnx.helper.set_model_props(proto, {METADATA: json.dumps(about)})
    return proto.SerializeToString()


def _compare(exported: ExportedModel, model: Predictor, smiles: Sequence[str]) -> float:
    """Return the largest difference from the model.

    Raises:
        InputError: the difference is above `TOLERANCE`, or one has an answer where the other has none.
    """
    expected, answers = model.predict(smiles), exported.predict(smiles)
    largest = 0.0
    for column in exported.columns:
        scale = _scale(model, column)
        ours, theirs = expected[column].to_numpy(float), np.asarray(answers[column])
        off = np.where(np.isnan(ours) & np.isnan(theirs), 0.0, np.abs(ours - theirs) / scale)
        worst = int(np.nanargmax(np.where(np.isnan(off), np.inf, off)))
        if not off[worst] <= TOLERANCE:
            raise InputError(
                f"this model cannot be exported: {column} of {smiles[worst]} would be {theirs[worst]:.6g} and not "
                f"{ours[worst]:.6g}"
            )
        largest = max(largest, float(off[worst]))
    return largest


def _scale(model: Predictor, column: str) -> float:
    """Return the standard deviation of the target of a column; 1 for probabilities."""
    task = model.task
    if not isinstance(task, Regression):
        return 1.0
    target = max((name for name in task.targets if column.startswith(name)), key=len)
    return float(task.scaler.sd[task.targets.index(target)]) or 1.0


def _line(reason: Exception) -> str:
    """Return the first line of an error, at most 200 characters."""
    return next(iter(str(reason).strip().splitlines()), type(reason).__name__)[:200]


@contextmanager
def _quietly() -> Iterator[None]:
    """Hold back the warnings that torch and onnxscript give about themselves."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
