"""`gtx export`: a file that runs without torch answers as the model does, for molecules of all sizes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import gtx
import gtx.export
from gtx.cli import main
from gtx.data import featurise
from gtx.errors import InputError
from gtx.export.program import check_exportable
from gtx.models import build_model, kernel
from gtx.molecules import Featuriser
from gtx.prediction import ModelHeader, save_model
from gtx.prediction.kernel_member import KernelMember
from gtx.prediction.loading import attach_foundation, foundation_spec
from gtx.tasks import BinaryClassification, CountRegression, MulticlassClassification, Regression, Task
from tests.tables import molecules

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

TABLE = molecules(120)
FEATURISER = Featuriser()
NEW = [*TABLE["smiles"][60:], "C", "[Na+].[Cl-]", "C1CC1.O", "C" * 90, "CC(=O)O[C@@H](C)/C=C/F", "[2H]OC"]
"""Molecules that no kernel of these tests learned from, some of one atom, without bonds or with many atoms."""
SIZES = {"atom_sizes": list(FEATURISER.atom_sizes), "bond_sizes": list(FEATURISER.bond_sizes)}


def saved(
    path: Path, task: Task, columns: list[str], networks: int = 1, own: bool = True, foundation: bool = False
) -> Path:
    """Save a model of untrained networks, of a kernel, or of both."""
    done = featurise(FEATURISER, TABLE["smiles"][:60].tolist(), workers=0)
    y = np.ascontiguousarray(TABLE[columns][:60].to_numpy(float))
    classes = isinstance(task, (BinaryClassification, MulticlassClassification))
    store = done.store.with_targets((y > np.median(y, 0)).astype(float) if classes else y)
    task = task.fitted(store)
    outputs = task.out_channels
    width = store.descriptors.shape[1]
    ridge = kernel(
        task.plain.out_channels if classes else len(columns),
        num_descriptors=width,
        foundation=foundation_spec() if foundation else None,
    )
    if own:
        embeddings = None
        if foundation:
            attach_foundation(ridge)
            embeddings = torch.cat([ridge.embed(store.batch(rows)) for rows in torch.arange(60).split(30)])
        ridge.solve(store, task.regressands(store), embeddings)
    partner = {"name": "kernel", "arguments": {"out_channels": outputs, **ridge.learned_arguments}}
    header = ModelHeader(task, FEATURISER, partner)
    if not networks:
        own_spec = {"name": "kernel", "arguments": partner["arguments"] | SIZES}
        save_model(path, [ridge], replace(header, model=own_spec))
        return path
    arguments = {"out_channels": outputs, **SIZES, "channels": 16, "layers": 1, "heads": 2, "num_descriptors": width}
    spec = {
        "name": "standard",
        "arguments": {**arguments, "encodings": ["path", "walk"], "steps": 4, "substructures": {}},
    }
    made = []
    for seed in range(networks):
        torch.manual_seed(seed)
        network = build_model(spec)
        network.observe(store)
        made.append(network.eval())
    header = replace(header, model=spec, partner=partner if own else None)
    save_model(path, made, header, KernelMember(ridge, torch.full((len(columns),), 0.4)) if own else None)
    return path


def compare(model: Path, out: Path, tolerance: float = 1e-5) -> pd.DataFrame:
    """Export, and hold the answers of the file equal to those of the model for new molecules."""
    assert main(["export", str(model), "--out", str(out)]) == 0
    exported, smiles = gtx.export.ExportedModel(out), [*NEW, "C(("]
    ours, theirs = gtx.load(model, "cpu").predict(smiles), exported.predict(smiles)
    for column in exported.columns:
        np.testing.assert_allclose(ours[column].to_numpy(float), theirs[column], rtol=tolerance, atol=tolerance)
    assert theirs["error"][:-1] == [None] * len(NEW) and theirs["error"][-1] and np.isnan(theirs[column][-1])
    return ours


@pytest.mark.slow
def test_networks_kernel_std_and_intervals_are_in_the_file(tmp_path: Path) -> None:
    interval = {"level": 0.9, "half_width": [0.7]}
    model = saved(tmp_path / "model.gtx", Regression(("gap",), interval=interval), ["gap"], networks=2)
    ours = compare(model, tmp_path / "model.onnx")
    assert {"gap_pred", "gap_std", "gap_low", "gap_high"} < set(ours)


@pytest.mark.slow
def test_an_extensive_target_and_variances(tmp_path: Path) -> None:
    columns = ["atomisation", "gap"]
    task = Regression(tuple(columns), element_reference=True, uncertainty="variance", std_factor=(1.5, 0.5))
    model = saved(tmp_path / "model.gtx", task, columns, own=False)
    compare(model, tmp_path / "model.onnx")


def test_a_kernel_alone(tmp_path: Path) -> None:
    model = saved(tmp_path / "model.gtx", Regression(("gap",)), ["gap"], networks=0)
    compare(model, tmp_path / "model.onnx", 1e-6)


@pytest.mark.slow
def test_a_kernel_that_compares_embeddings(tmp_path: Path) -> None:
    model = saved(tmp_path / "model.gtx", Regression(("gap",)), ["gap"], networks=0, foundation=True)
    compare(model, tmp_path / "model.onnx")


def test_probabilities_with_a_temperature(tmp_path: Path) -> None:
    task = BinaryClassification(("gap", "dipole"), temperatures=(0.5, 2.0))
    model = saved(tmp_path / "model.gtx", task, ["gap", "dipole"], networks=0)
    compare(model, tmp_path / "model.onnx", 1e-6)


def test_several_classes(tmp_path: Path) -> None:
    task = MulticlassClassification(("gap",), classes=(("low", "high"),), temperatures=(1.7,))
    model = saved(tmp_path / "model.gtx", task, ["gap"], networks=0)
    compare(model, tmp_path / "model.onnx", 1e-6)


def test_the_file_runs_without_torch(tmp_path: Path) -> None:
    model = saved(tmp_path / "model.gtx", Regression(("gap",)), ["gap"], networks=0)
    gtx.export.export_model(gtx.load(model, "cpu"), tmp_path / "model.onnx")
    code = (
        "import sys; from gtx.export import ExportedModel; "
        "print(ExportedModel('model.onnx').predict(['CCO'])['gap_pred'][0]); assert 'torch' not in sys.modules"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert float(done.stdout) == pytest.approx(gtx.load(model, "cpu").predict(["CCO"])["gap_pred"][0], abs=1e-6)


def test_a_file_that_would_answer_otherwise_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = gtx.load(saved(tmp_path / "model.gtx", Regression(("gap",)), ["gap"], networks=0), "cpu")
    real = type(model).predict

    def other(self: object, smiles: list[str]) -> pd.DataFrame:
        return real(self, smiles).assign(gap_pred=0.0)

    monkeypatch.setattr(type(model), "predict", other)
    with pytest.raises(InputError, match=r"gap_pred of C would be .* and not 0"):
        gtx.export.export_model(model, tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


def test_what_cannot_be_exported_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = gtx.load(saved(tmp_path / "model.gtx", Regression(("gap",)), ["gap"], networks=0), "cpu")
    for task, words in (
        (CountRegression(("gap",)), "the task counts"),
        (Regression(("gap",), uncertainty="similarity"), "uncertainty similarity"),
    ):
        with pytest.raises(InputError, match=words):
            check_exportable(model.with_header(replace(model.header, task=task)))
    featuriser = Featuriser(coordinates=True)
    with pytest.raises(InputError, match="coordinates"):
        check_exportable(model.with_header(replace(model.header, featuriser=featuriser)))
    assert main(["export", str(tmp_path / "model.gtx"), "--out", str(tmp_path / "model.pt")]) == 2
    assert ".onnx" in capsys.readouterr().err


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_text("no such thing")
    with pytest.raises(InputError, match="cannot be used by onnxruntime"):
        gtx.export.ExportedModel(tmp_path / "model.onnx")
    with pytest.raises(InputError, match="there is no file"):
        gtx.export.ExportedModel(tmp_path / "absent.onnx")
