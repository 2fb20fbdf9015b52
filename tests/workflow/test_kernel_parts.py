"""A kernel may compare the embedding by the foundation too; a model file says so, and needs the same foundation."""

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, safe_open, save

import gtx
import gtx.kernel.regression
import gtx.prediction.foundation
from gtx.base.errors import InputError
from gtx.cli import main
from gtx.data import featurise
from gtx.estimators import MoleculeRegressor
from gtx.explain import compute_attribution
from gtx.kernel import KernelRidge
from gtx.prediction import Predictor
from gtx.training import TrainSettings
from gtx.training_data import DataSettings
from gtx.workflow import train_model
from tests.tables import ALONE, TINY, molecules, read, write_molecules

pytestmark = pytest.mark.slow

PARTS = ["substructures", "descriptors", "foundation"]
TABLE = molecules(60)


@pytest.fixture(scope="module", autouse=True)
def share() -> None:
    """The foundation has a share of one half, whatever left-out rows prefer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KernelRidge, "_choose_embeddings", lambda model, *_: model.embeddings.share.fill_(0.5))
        patch.setattr(gtx.kernel.regression, "MOST_CHOOSING", 40)
        yield


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    return write_molecules(tmp_path_factory.mktemp("parts") / "data.csv", len(TABLE), "gap")


def learn(table: Path, out: Path, **options):
    data = DataSettings(str(table), ("gap",), split_sizes=(0.6, 0.2, 0.2), workers=0)
    settings = {"progress": False} if options.get("model") == "kernel" else TINY | {"epochs": 1}
    train_model(data, TrainSettings(**settings | options), out, **ALONE)
    return out / "model.gtx"


@pytest.fixture(scope="module")
def blend(table: Path, tmp_path_factory) -> Path:
    return learn(table, tmp_path_factory.mktemp("runs") / "blend", kernel_parts=PARTS)


def test_network_and_kernel_with_the_foundation_predict_from_everywhere(blend, table, tmp_path, capsys) -> None:
    predictor = gtx.load(blend, device="cpu")
    assert predictor.kernel_member.kernel.kernel_names == PARTS
    smiles = TABLE["smiles"].tolist()[:8]
    together = predictor.predict([*smiles, "no molecule"], workers=0)
    assert together["error"].notna().tolist() == [False] * 8 + [True]
    alone = [predictor.predict(text)["gap_pred"][0] for text in smiles]
    np.testing.assert_allclose(together["gap_pred"][:8], alone, rtol=1e-5, atol=1e-5)
    again = pickle.loads(pickle.dumps(predictor)).predict(smiles, workers=0)
    np.testing.assert_allclose(again["gap_pred"], alone, rtol=1e-5, atol=1e-5)
    assert main(["predict", str(blend), str(table), "--out", str(tmp_path / "out.csv"), "--workers=0"]) == 0
    found = [float(row["gap_pred"]) for row in read(tmp_path / "out.csv")[:8]]
    np.testing.assert_allclose(found, alone, rtol=1e-5, atol=1e-5)
    assert main(["info", str(blend)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(r"blend \d+% network \+ \d+% kernel, kernel of 48 molecules", said)
    assert "molecules, compares substructures, descriptors, foundation embeddings" in said
    assert main(["explain", str(blend), smiles[5], "--draws", "2", "--out", str(tmp_path / "figure.svg")]) == 0


def test_the_network_reads_the_foundation_where_the_kernel_may(table: Path, tmp_path) -> None:
    for name, options in (("plain", {"kernel_parts": PARTS[:2]}), ("alone", {"blend": "no"})):
        (network,) = gtx.load(learn(table, tmp_path / name, **options), device="cpu").members
        assert (network.readout.embedding is None) == (name == "plain")


def test_atoms_share_what_the_embedding_brings(blend: Path) -> None:
    predictor = gtx.load(blend, device="cpu")
    forward, backward = (compute_attribution(predictor, smiles, draws=2) for smiles in ("CCOC=O", "O=COCC"))
    assert forward.prediction == pytest.approx(predictor.predict("CCOC=O")["gap_pred"][0], abs=1e-4)
    assert forward.contributions.values.sum() == pytest.approx(forward.prediction - forward.without, abs=1e-9)
    np.testing.assert_allclose(forward.contributions.values, backward.contributions.values[::-1], atol=1e-6)
    kernel = predictor.kernel_member.kernel.double()
    batch = featurise(predictor.header.featuriser, ["CCOC=O"], workers=0).store.batch(torch.tensor([0]))
    share, sd = float(predictor.kernel_member.share[0]), float(predictor.task.scaler.sd[0])
    network = compute_attribution(Predictor(predictor.members, predictor.header, "cpu"), "CCOC=O", draws=2)
    counts = kernel.contributions(batch)[0][:, 0].numpy()
    rest = forward.contributions.values - (1 - share) * network.contributions.values - share * sd * counts
    assert share > 0 and np.abs(rest).max() > 1e-4  # what remains is the embedding's


def test_a_file_needs_the_foundation_that_its_kernel_was_solved_with(blend, tmp_path, monkeypatch, capsys) -> None:
    with safe_open(blend, "pt") as file:
        header = json.loads(file.metadata()["gtx"])
    del header["sha256"]
    header["partner"]["arguments"]["foundation"]["sha256"] = "0" * 64
    other = tmp_path / "other.gtx"
    other.write_bytes(save(load_file(blend), {"gtx": json.dumps(header)}))
    with pytest.raises(InputError, match=r"other\.gtx cannot be .*SHA-256 000000000000 and 384 numbers, this gtx"):
        gtx.load(other)
    header["partner"]["arguments"]["foundation"]["width"] = 0
    other.write_bytes(save(load_file(blend), {"gtx": json.dumps(header)}))
    with pytest.raises(InputError, match=r"foundation\.width"):
        gtx.load(other)
    monkeypatch.setattr(gtx.prediction.foundation, "_FOLDER", tmp_path)
    assert main(["predict", str(blend), "CCO", "--out", str(tmp_path / "out.csv")]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "the card of the foundation is not in this installation of gtx" in line


def test_kernel_alone_and_estimators_compare_the_parts_that_are_named(table: Path, tmp_path) -> None:
    model = learn(table, tmp_path / "run", model="kernel", kernel_parts=PARTS[::2])
    (kernel,) = gtx.load(model, device="cpu").members
    assert kernel.kernel_names == PARTS[::2] and kernel.embed is not None
    smiles, y = TABLE["smiles"].tolist(), TABLE["gap"].to_numpy()
    settings = {"kernel_parts": PARTS, "accelerator": "cpu"}
    estimator = MoleculeRegressor(model="kernel", settings=settings, workers=0).fit(smiles, y)
    assert estimator.predictor_.members[0].kernel_names == PARTS and np.isfinite(estimator.predict(smiles[:3])).all()
