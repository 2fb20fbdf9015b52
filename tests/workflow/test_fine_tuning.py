"""Going on from a pretrained model: what is kept, joined, and learns how fast; the file that gtx brings."""

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

import gtx
from experiments.foundation import pretrain
from gtx.base.errors import InputError
from gtx.cli import main
from gtx.models import build_model
from gtx.molecules import DESCRIPTOR_NAMES, Featuriser, murcko_scaffold
from gtx.prediction import ModelFileHeader, foundation, save_model
from gtx.prediction.model_file import read_model
from gtx.tasks import Regression
from gtx.tasks.regression import TargetScaler
from gtx.training import TrainSettings
from gtx.training.optimise import rate_of
from gtx.training_data import DataSettings, load_training_table
from gtx.workflow import PretrainedModel, train_model
from tests.molecules_for_tests import CODE_SIZES
from tests.tables import ALONE, TINY, molecules, write_molecules

pytestmark = pytest.mark.slow

TUNING = pretrain.TUNING | {"head_first": 0.25}
PRETRAINED = ("MolWt", "TPSA", "MolLogP")


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory) -> Path:
    """A folder as the package has it: a small encoder of weights that nobody trained, in float16, and its card."""
    folder, featuriser = tmp_path_factory.mktemp("foundation"), Featuriser(descriptors=False)
    arguments = {"out_channels": 3, **CODE_SIZES, **TINY["model_arguments"], "substructures": None}
    task = Regression(PRETRAINED, scaler=TargetScaler(torch.zeros(3).double(), torch.ones(3).double()))
    torch.manual_seed(0)
    spec = {"name": "standard", "arguments": arguments}
    header = ModelFileHeader(task, featuriser, spec, settings={"tuning": TUNING})
    save_model(folder / "foundation.gtx", [build_model(spec)], header, half=True)
    return carded(folder)


@pytest.fixture(autouse=True)
def unreported(monkeypatch) -> None:
    """No report, whose pictures take longer than the trainings here."""
    monkeypatch.setattr("gtx.report.write_run_report", lambda *_: [])


def carded(folder: Path) -> Path:
    digest = hashlib.sha256((folder / "foundation.gtx").read_bytes()).hexdigest()
    (folder / "foundation.json").write_text(json.dumps({"sha256": digest, "corpus": "made up"}))
    known = molecules(60)["smiles"][::2]
    filters = {"molecules": known, "scaffolds": map(murcko_scaffold, known)}
    np.savez(folder / "seen.npz", **{name: foundation.make_filter(texts) for name, texts in filters.items()})
    return folder


@pytest.fixture
def brought(pretrained: Path, monkeypatch) -> Path:
    """It stands where gtx's own would."""
    monkeypatch.setattr(foundation, "_FOLDER", pretrained)
    return pretrained


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> DataSettings:
    table = write_molecules(tmp_path_factory.mktemp("table") / "t.csv", 60, "solvation_water")
    return DataSettings(str(table), ("solvation_water",), workers=0)


def tuned(data: DataSettings, out: Path, **settings: object) -> gtx.prediction.Predictor:
    how = TrainSettings(**TINY | {"model_arguments": {}, "blend": "no"} | settings)
    train_model(data, how, out, start="foundation", **ALONE)
    return gtx.load(out / "model.gtx", device="cpu")


def test_weights_of_half_the_bytes_are_read_as_float32(pretrained: Path) -> None:
    (member,), *_ = read_model(pretrained / "foundation.gtx")
    kept = load_file(pretrained / "foundation.gtx")
    assert {kept[f"members.0.{name}"].dtype for name, _ in member.named_parameters()} == {torch.float16}
    assert kept["members.0.embedding.vocabularies.atoms.seen"].dtype == torch.bool
    for name, weight in member.state_dict().items():
        assert weight.equal(kept[f"members.0.{name}"].to(weight.dtype)), name


def test_the_encoder_is_kept_and_the_readout_has_descriptors_and_counts(data, brought, tmp_path, capsys) -> None:
    found = tuned(data, tmp_path / "out")
    arguments = found.header.model["arguments"]
    assert arguments["num_descriptors"] == len(DESCRIPTOR_NAMES)
    assert arguments["substructures"] and arguments["channels"] == 16
    assert found.header.featuriser.descriptors
    settings = yaml.safe_load((tmp_path / "out" / "config.yaml").read_text())["settings"]
    assert (settings["rates"], settings["head_first"]) == (TUNING["rates"], TUNING["head_first"])
    origin, card = found.header.settings["start"], json.loads((brought / "foundation.json").read_text())
    assert (origin["file"], origin["sha256"]) == ("foundation", card["sha256"])
    assert "8 are new: readout.descriptors.mean" in origin["weights"]
    capsys.readouterr()
    assert main(["info", str(tmp_path / "out" / "model.gtx")]) == 0
    seen = re.search(r"pretrained on (\d+) of these (\d+) molecules, and", capsys.readouterr().out)
    assert 0 < int(seen[1]) < int(seen[2])
    (start,), *_ = read_model(brought / "foundation.gtx")
    own = found.members[0].state_dict()
    new = [k for k, w in found.members[0].named_parameters() if k not in start.state_dict() or "head" in k]
    assert len(new) == 5 and {rate_of(name, TUNING["rates"]) for name in new} == {1}
    moved = {k: float((own[k] - w).abs().max()) for k, w in start.state_dict().items() if k.startswith("layers.")}
    assert 0 < max(moved.values()) < 3 * 3 * 1e-4  # three steps of Adam, each about a tenth of the rate


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> tuple[DataSettings, Path]:
    """A table of three targets, and a model of two of them, in another order."""
    columns = ["solvation_water", "gap", "dipole"]
    folder = tmp_path_factory.mktemp("two")
    table = write_molecules(folder / "t.csv", 60, *columns)
    data = DataSettings(str(table), (columns[1], columns[0]), workers=0)
    train_model(data, TrainSettings(**TINY | {"epochs": 1, "blend": "no"}), folder / "out", **ALONE)
    return replace(data, target_columns=tuple(columns)), folder / "out" / "model.gtx"


def gone_on(
    data: DataSettings, start: Path, out: Path, new_head: bool = False
) -> tuple[gtx.prediction.Predictor, list[str]]:
    """Its rate is as good as none, so that weights are those it starts from."""
    settings = TrainSettings(epochs=1, blend="no", threads=1, progress=False, lr=1e-12)
    done = train_model(data, settings, out, start=start, **ALONE, new_head=new_head)
    return gtx.load(out / "model.gtx", device="cpu"), list(done.notes)


def test_outputs_of_known_targets_are_kept_and_those_of_others_added(two: tuple[DataSettings, Path], tmp_path) -> None:
    data, start = two
    more, notes = gone_on(data, start, tmp_path / "more")
    smiles = molecules(60)["smiles"][:5].tolist()
    old, new = gtx.load(start, device="cpu").predict(smiles), more.predict(smiles)
    for name in ("gap_pred", "solvation_water_pred"):
        assert new[name].tolist() == pytest.approx(old[name].tolist(), rel=1e-4)
    assert new["dipole_pred"].notna().all()
    assert any("2 of 3 outputs in head.3.weight and head.3.bias" in note for note in notes)
    assert not any("was trained on" in note for note in notes)
    fewer, notes = gone_on(replace(data, target_columns=("gap",)), start, tmp_path / "fewer")
    assert fewer.predict(smiles)["gap_pred"].tolist() == pytest.approx(old["gap_pred"].tolist(), rel=1e-4)
    assert "the model predicts no more: solvation_water" in notes


def test_molecules_that_taught_the_model_before_are_told_where_they_judge(two: tuple[DataSettings, Path]) -> None:
    data, start = two
    before, now = load_training_table(data).split, load_training_table(replace(data, seed=1))
    taught = len(set(before["train"].tolist()).intersection(test := now.split["test"].tolist()))
    said = PretrainedModel.open(start, data, TrainSettings()).warnings(now)
    assert f"warning: model.gtx was trained on {taught} of these {len(test)} test molecules, which" in said[-1]
    opened = PretrainedModel.open(start, data, TrainSettings())
    bare = replace(opened, header=replace(opened.header, training=None))
    few = replace(opened.header.training, smiles=["C"], rows=[1])
    sample = replace(opened, header=replace(opened.header, training=few))
    for model, kept in ((bare, "no"), (sample, "1 of ")):
        (line,) = model.warnings(now)
        assert line.startswith(f"warning: model.gtx contains {kept}") and "is unknown; --split-column" in line


def test_a_new_head_knows_nothing_of_the_old_one(two: tuple[DataSettings, Path], tmp_path, capsys) -> None:
    data, start = two
    same = replace(data, target_columns=("gap", "solvation_water"))
    renewed, notes = gone_on(same, start, tmp_path / "new", new_head=True)
    before, after = read_model(start)[0][0].state_dict(), renewed.members[0].state_dict()
    same_shape = [name for name, weight in before.items() if weight.shape == after[name].shape]
    unlike = {name for name in same_shape if not after[name].allclose(before[name], atol=1e-6)}
    assert {"head.0.weight", "head.3.weight"} <= unlike <= {f"head.{i}.{p}" for i in (0, 3) for p in ("weight", "bias")}
    assert any("4 are new: head.0.weight" in note for note in notes)
    words = ["train", data.data, "--target-columns", "gap", "--out", str(tmp_path / "no")]
    assert main([*words, "--new-head"]) == 2
    assert "name it with --from" in capsys.readouterr().err
    assert main([*words, "--from", str(start), "--head-first", "0.5", "--epochs=1", "--workers=0"]) == 2
    assert "head-first: no module waits" in capsys.readouterr().err and not (tmp_path / "no" / "config.yaml").exists()


def test_outputs_that_start_from_those_of_another_task_are_told(two: tuple[DataSettings, Path], tmp_path) -> None:
    data, start = two
    rows = pd.read_csv(data.data)
    classes = {f"{name}_high": (rows[name] > rows[name].median()).astype(int) for name in ("gap", "dipole")}
    rows.assign(**classes).to_csv(tmp_path / "t.csv", index=False)
    _, notes = gone_on(replace(data, data=str(tmp_path / "t.csv"), target_columns=(*classes,)), start, tmp_path / "out")
    assert "warning: the outputs start from those of regression; `new_head` makes new ones" in notes


def test_the_word_stands_for_the_file_wherever_one_does(brought: Path, capsys, tmp_path) -> None:
    assert gtx.load("foundation").embed(["CCO", "c1ccccc1"]).shape == (2, 48)
    assert main(["info", "foundation"]) == 0
    assert "made up" in capsys.readouterr().out
    (tmp_path / "m.csv").write_text("smiles\nCCO\n")
    words = ["predict", "foundation", str(tmp_path / "m.csv"), "--out", str(tmp_path / "p.csv"), "--workers=0"]
    assert main(words) == 0
    assert (tmp_path / "p.csv").read_text().startswith("smiles,MolWt_pred,TPSA_pred,MolLogP_pred")


def test_a_damaged_foundation_is_refused(pretrained: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(foundation, "_FOLDER", tmp_path)
    with pytest.raises(InputError, match="the card of the foundation is not in this installation"):
        gtx.load("foundation")
    whole = (pretrained / "foundation.gtx").read_bytes()
    (tmp_path / "foundation.json").write_text((pretrained / "foundation.json").read_text())
    with pytest.raises(InputError, match="not in this installation"):
        gtx.load("foundation")
    (tmp_path / "foundation.gtx").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(InputError, match="is damaged: its card says SHA-256"):
        gtx.load("foundation")

    def changed(tensors: dict, header: dict) -> None:
        save_file(tensors, tmp_path / "foundation.gtx", {"gtx": json.dumps(header)})
        carded(tmp_path)

    tensors, (_, header, _) = load_file(pretrained / "foundation.gtx"), read_model(pretrained / "foundation.gtx")
    plain = header.to_dict() | {"members": 1}
    changed(tensors, plain | {"settings": {"tuning": {"rates": {"all": -1}}}})
    with pytest.raises(InputError, match="all: expected a number of 0 or more"):
        gtx.load("foundation")
