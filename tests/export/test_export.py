"""`gtx export`: a file that runs without torch answers as the model does, for molecules of all sizes."""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import gtx
import gtx.export.exporting
from gtx.base.errors import InputError
from gtx.cli import main
from gtx.data import featurise
from gtx.export.exporting import UNUSUAL, check_exportable
from gtx.export.running import ExportedModel
from gtx.models import build_model, kernel_ridge
from gtx.molecules import Featuriser
from gtx.prediction import ModelFileHeader, foundation, save_model
from gtx.prediction.foundation_embedding import attach_foundation, foundation_spec
from gtx.prediction.model_file import KernelMember
from gtx.tasks import BinaryClassification, FractionRegression, MulticlassClassification, Regression, Task
from gtx.tasks.regression import TargetScaler
from tests.molecules_for_tests import CODE_SIZES
from tests.tables import molecules

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

TABLE = molecules(120)
FEATURISER = Featuriser()
NEW = [*TABLE["smiles"][60:], "C", "[Na+].[Cl-]", "C1CC1.O", "C" * 90, "CC(=O)O[C@@H](C)/C=C/F", "[2H]OC"]
"""Molecules that no kernel of these tests learned from, some of one atom, without bonds or with many atoms."""


SMALL = {"channels": 16, "layers": 1, "heads": 2, "steps": 2, "farthest": 4}  # an export takes time by the steps
SMALL |= {"substructures": {"atoms": [0, 1], "bonds": [0]}}  # and by the columns that are hashed
SPEC = {"name": "standard", "arguments": {**CODE_SIZES, **SMALL, "encodings": ["path", "walk"]}}
FEW = [[{"radius": 1, "atoms": [0], "bonds": [0]}]]
"""Substructures of a kernel; that of `alone` has the usual ones."""


@pytest.fixture(scope="module", autouse=True)
def small_foundation(tmp_path_factory) -> Iterator[None]:
    """A small encoder stands where that of gtx would."""
    folder = tmp_path_factory.mktemp("foundation")
    arguments = SPEC["arguments"] | {"out_channels": 1, "substructures": None}
    name, spec = foundation.FOUNDATION_MODEL, {**SPEC, "arguments": arguments}
    task = Regression(("y",), scaler=TargetScaler(torch.zeros(1).double(), torch.ones(1).double()))
    torch.manual_seed(0)
    save_model(folder / f"{name}.gtx", [build_model(spec)], ModelFileHeader(task, Featuriser(descriptors=False), spec))
    digest = hashlib.sha256((folder / f"{name}.gtx").read_bytes()).hexdigest()
    (folder / f"{name}.json").write_text(json.dumps({"sha256": digest}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(foundation, "_FOLDER", folder)
        yield


def saved(path: Path, task: Task, network: bool = False) -> Path:
    """Save the model of a kernel, or of an untrained network blended with one, both with embeddings."""
    done = featurise(FEATURISER, TABLE["smiles"][:60].tolist(), workers=0)
    y = np.ascontiguousarray(TABLE[list(task.targets)][:60].to_numpy(float))
    classes = isinstance(task, (BinaryClassification, MulticlassClassification))
    store = done.store.with_targets((y > np.median(y, 0)).astype(float) if classes else y)
    task, width = task.fit(store), store.descriptors.shape[1]
    outputs = task.objective.point.out_channels if classes else len(task.targets)
    embedding = foundation_spec() if network else None
    labels = FEW if network or classes else None
    ridge = kernel_ridge(outputs, num_descriptors=width, foundation=embedding, labels=labels)
    embeddings = attach_foundation(ridge).embed(store.batch(range(60))) if network else None
    ridge.solve(store, task.objective.regressands(store), embeddings)
    partner = {"name": "kernel", "arguments": {"out_channels": outputs, **ridge.learned_arguments}}
    header = ModelFileHeader(task, FEATURISER, partner)
    if not network:
        save_model(path, [ridge], replace(header, model={**partner, "arguments": partner["arguments"] | CODE_SIZES}))
        return path
    more = {"out_channels": task.objective.out_channels, "num_descriptors": width, "foundation": embedding}
    spec = {**SPEC, "arguments": SPEC["arguments"] | more}
    torch.manual_seed(0)
    made = attach_foundation(build_model(spec))
    made.observe(store)
    share = torch.full((len(task.targets),), 0.4)
    save_model(path, [made.eval()], replace(header, model=spec, partner=partner), KernelMember(ridge, share))
    return path


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    """A folder with `model.gtx`, a kernel alone, and `model.onnx`, its export."""
    folder = tmp_path_factory.mktemp("alone")
    model = saved(folder / "model.gtx", Regression(("gap",)))
    (folder / "check.csv").write_text("smiles\nCCO\nC((\n")
    words = ["--out", str(folder / "model.onnx"), "--check", str(folder / "check.csv")]
    assert main(["export", str(model), *words]) == 0
    return folder


def compare(folder: Path, tolerance: float = 1e-5) -> pd.DataFrame:
    """Hold the answers of the exported file equal to those of the model for new molecules."""
    exported, smiles = ExportedModel(folder / "model.onnx"), [*NEW, "C(("]
    ours, theirs = gtx.load(folder / "model.gtx", "cpu").predict(smiles), exported.predict(smiles)
    for column in exported.columns:
        np.testing.assert_allclose(ours[column].to_numpy(float), theirs[column], rtol=tolerance, atol=tolerance)
    assert theirs["error"][:-1] == [None] * len(NEW) and theirs["error"][-1] and np.isnan(theirs[column][-1])
    return ours


VARIANCES = Regression(
    ("atomisation", "gap"),
    element_reference=True,
    uncertainty="variance",
    std_factor=(1.5, 0.5),
    interval={"level": 0.9, "half_width": [0.7, 2.0]},
)
MODELS: dict[str, tuple[Task, bool, float]] = {
    "a network, a kernel, embeddings of both, variances, an extensive target": (VARIANCES, True, 1e-5),
    "probabilities with a temperature": (BinaryClassification(("gap", "dipole"), temperatures=(0.5, 2.0)), False, 1e-6),
    "several classes": (
        MulticlassClassification(("gap",), classes=(("low", "high"),), temperatures=(1.7,)),
        False,
        1e-6,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_file_answers_as_the_model_does(name: str, tmp_path, capsys) -> None:
    task, network, tolerance = MODELS[name]
    model = saved(tmp_path / "model.gtx", task, network)
    assert main(["export", str(model), "--out", str(tmp_path / "model.onnx")]) == 0
    printed = capsys.readouterr()
    assert [line[:3] for line in printed.err.splitlines() if "/3 " in line] == ["1/3", "2/3", "3/3"]
    unit = "standard deviations of the target" if isinstance(task, Regression) else "of a probability"
    assert printed.out.endswith(f" {unit}\n")
    ours = compare(tmp_path, tolerance)
    if isinstance(task, Regression) and task.interval:
        assert {"gap_pred", "gap_std", "gap_low", "gap_high"} < set(ours)


@pytest.mark.slow
def test_the_file_of_a_kernel_alone_runs_without_torch(alone: Path) -> None:
    compare(alone, 1e-6)
    assert ExportedModel(alone / "model.onnx").about["checked"]["molecules"] == len(UNUSUAL) + 1
    code = (
        "import sys; from gtx.export.running import ExportedModel; "
        "print(ExportedModel('model.onnx').predict(['CCO'])['gap_pred'][0]); assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=alone, capture_output=True, text=True, check=True)
    expected = gtx.load(alone / "model.gtx", "cpu").predict(["CCO"])["gap_pred"][0]
    assert float(done.stdout) == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_the_examples_of_the_page_run(alone: Path, monkeypatch) -> None:
    monkeypatch.chdir(alone)
    (alone / "run").mkdir()
    (alone / "run" / "model.gtx").symlink_to(alone / "model.gtx")
    page, names = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(), {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    assert names["answers"] == pytest.approx(gtx.load("model.gtx").predict(["c1ccccc1O"])["gap_pred"], abs=1e-5)


@pytest.mark.slow
def test_a_file_that_would_answer_otherwise_is_not_written(alone: Path, tmp_path, monkeypatch) -> None:
    model = gtx.load(alone / "model.gtx", "cpu")
    real = type(model).predict

    def other(self: object, smiles: list[str]) -> pd.DataFrame:
        return real(self, smiles).assign(gap_pred=0.0)

    monkeypatch.setattr(type(model), "predict", other)
    monkeypatch.setattr(gtx.export.exporting, "_to_onnx", lambda *_: (alone / "model.onnx").read_bytes())
    with pytest.raises(InputError, match=r"gap_pred of C would be .* and not 0"):
        gtx.export.exporting.export_model(model, tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


def test_what_cannot_be_exported_is_named(tmp_path, capsys) -> None:
    model = gtx.load(saved(tmp_path / "model.gtx", Regression(("gap",))), "cpu")
    for task, words in (
        (FractionRegression(("gap", "rest")), "the task fractions"),
        (Regression(("gap",), uncertainty="similarity"), "uncertainty similarity"),
    ):
        with pytest.raises(InputError, match=words):
            check_exportable(model.with_header(replace(model.header, task=task)))
    featuriser = Featuriser(coordinates=True)
    with pytest.raises(InputError, match="coordinates"):
        check_exportable(model.with_header(replace(model.header, featuriser=featuriser)))
    assert main(["export", str(tmp_path / "model.gtx"), "--out", str(tmp_path / "model.pt")]) == 2
    assert ".onnx" in capsys.readouterr().err


def test_another_file_is_refused(tmp_path) -> None:
    (tmp_path / "model.onnx").write_text("no such thing")
    with pytest.raises(InputError, match="cannot be used by onnxruntime"):
        ExportedModel(tmp_path / "model.onnx")
    with pytest.raises(InputError, match="there is no file"):
        ExportedModel(tmp_path / "absent.onnx")
