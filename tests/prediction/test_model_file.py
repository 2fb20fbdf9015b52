"""Model files: read back whole, refused where they are not, and those at hand predict what they did."""

import gzip
import json
import pickle
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from rdkit import rdBase
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

import gtx
from gtx.attention import ScaledDotScore, Score
from gtx.data import featurise
from gtx.models import standard
from gtx.molecules import Featuriser
from gtx.prediction import ModelFileHeader, Predictor, save_model
from gtx.prediction.model_file import read_model
from gtx.tasks import Regression
from tests.molecules_for_tests import CODE_SIZES
from tests.tables import GOLDEN


def test_a_model_survives_the_round_trip(model_path: Path, tmp_path) -> None:
    members, header, _ = read_model(model_path)
    save_model(tmp_path / "again.gtx", members, header)
    assert (tmp_path / "again.gtx").read_bytes() == model_path.read_bytes()
    assert len(members) == 2 and not any(member.training for member in members)
    assert header.targets == ["gap", "solvation_water"] and header.versions["torch"] == version("torch")
    assert not list(tmp_path.glob(".*"))


def test_a_file_made_with_another_rdkit_is_read(model_path: Path, tmp_path, monkeypatch, recwarn) -> None:
    header, tensors = parts(model_path)
    header["versions"]["rdkit"] = "1999.1.1"
    save_file(tensors, tmp_path / "old.gtx", {"gtx": json.dumps(header)})
    monkeypatch.setattr(rdBase, "rdkitVersion", "2099.01.1")
    answers = [gtx.load(path, device="cpu").predict(["CCO"]) for path in (model_path, tmp_path / "old.gtx")]
    assert answers[0].equals(answers[1]) and not recwarn.list


def test_what_is_no_whole_model_file_is_refused_in_one_line(model_path: Path, tmp_path) -> None:
    whole = model_path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    cut = [whole[:end] for end in (5, length // 2, length + 1000, -1)]  # in the length, the header and the weights
    for content in (*cut, whole[:20] + b"\xff" + whole[21:]):
        (tmp_path / "bad.gtx").write_bytes(content)
        refused(tmp_path / "bad.gtx", "bad.gtx is not a whole gtx model file")
    torch.save({"weights": [1, 2, 3]}, tmp_path / "last.ckpt")
    others = (
        (b"", "an empty file"),
        ("smiles,y\nCµ,1\n".encode() * 1000, "a table"),
        ("smiles;y\nC;1 µM\n".encode("latin-1"), "a table"),
        ("smiles\ty\nC\t1\n".encode("utf-16"), "a text in UTF-16"),
        (b"CCO ethanol\nC methane\n", "a text"),
        (gzip.compress(b"smiles\nC\n"), "a file packed by gzip"),
        (b"PK\x03\x04\x14\0\x06\0" + bytes(99), "a ZIP file or an Excel workbook"),
        ((tmp_path / "last.ckpt").read_bytes(), "a checkpoint of PyTorch"),
        (pickle.dumps({"weights": [1, 2, 3]}), "a pickle of Python"),
        (b"PAR1" + bytes(99), "a Parquet file"),
    )
    for content, kind in others:
        (tmp_path / "bad.gtx").write_bytes(content)
        refused(tmp_path / "bad.gtx", f"bad.gtx is not a gtx model file .it looks like {kind}.; expected one")
    refused(tmp_path / "none.gtx", "no such file: .*none.gtx")
    refused(None, "expected the path of a model file, got a value of type NoneType")
    refused(tmp_path / ("long" * 100), "no such file: .*longlong")
    refused(tmp_path, "is a folder; expected a file, such as .*model.gtx")


BIAS = "members.1.head.3.bias"
Changes = dict[str, tuple[Callable[[dict[str, Any], dict[str, Tensor]], Any], str]]
NOT_THE_MODELS: Changes = {
    "from before 0.1.0": (
        lambda h, t: h.update(format=5),
        "it is of format 5, this gtx reads format 1; a gtx from before 0.1.0 made it: train anew",
    ),
    "other features": (lambda h, t: h["featuriser"].update(hash="0"), "describes molecules differently"),
    "unknown setting": (lambda h, t: h["featuriser"]["settings"].update(colour=1), "colour"),
    "unknown model": (lambda h, t: h["model"].update(name="annotations"), "model.name: 'annotations' is not one of"),
    "other shape": (lambda h, t: h["model"]["arguments"].update(channels=32), "F32 .195, 32., the file F32 .195, 16."),
    "member missing": (lambda h, t: h.update(members=3), "tensor members.2.* the file has none"),
    "no task": (lambda h, t: h.pop("task"), "task: this entry is missing"),
    "not finite": (lambda h, t: t[BIAS].fill_(torch.inf), f"tensor {BIAS}: expected finite numbers, got inf"),
    "other type": (
        lambda h, t: t.update({BIAS: t[BIAS].double()}),
        rf"tensor {BIAS}: the header's model has F32 \[2\], the file F64 \[2\]",
    ),
    "too few": (lambda h, t: t.pop(BIAS), f"tensor {BIAS}: the header describes it, the file has none"),
    "too many": (lambda h, t: t.update(wings=torch.zeros(2)), "tensor wings: the file has it, the header describes"),
}
OF_A_BLEND: Changes = {
    "a share": (lambda h, t: t["partner.share"].fill_(1.5), "expected shares from 0 to 1, got 1.5"),
    "a kind": (lambda h, t: t["partner.kernel.kind"].fill_(10**6), "not in order"),
    "a part": (lambda h, t: t.pop("partner.share"), "tensor partner.share: the header describes it, the file has none"),
}


@pytest.mark.parametrize("change", NOT_THE_MODELS | OF_A_BLEND)
def test_a_header_or_a_tensor_that_does_not_fit_is_refused(change: str, model_path: Path, tmp_path) -> None:
    header, tensors = parts(GOLDEN / "mix.gtx" if change in OF_A_BLEND else model_path)
    alter, reason = (NOT_THE_MODELS | OF_A_BLEND)[change]
    alter(header, tensors)
    save_file(tensors, tmp_path / "bad.gtx", {"gtx": json.dumps(header)})
    refused(tmp_path / "bad.gtx", f"bad.gtx cannot be used: .*{reason}")


@pytest.mark.parametrize("where", ["a weight", "the header"])
def test_a_file_of_which_a_bit_has_changed_is_refused(where: str, model_path: Path, tmp_path) -> None:
    file = tmp_path / "bad.gtx"
    gtx.load(model_path).save(file)
    whole = bytearray(file.read_bytes())
    length = int.from_bytes(whole[:8], "little")
    version = whole.index(b"versions") + len(b'versions\\": {\\"gtx\\": \\"')
    place = {"a weight": 8 + length + 1001, "the header": version}[where]
    whole[place] ^= 1
    file.write_bytes(whole)
    refused(file, "bad.gtx cannot be used: it is damaged: its SHA-256 is another than when gtx wrote it")


def parts(path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The header of a model file, without the checksum, and its tensors."""
    with safe_open(path, "pt") as file:
        names, header = list(file.keys()), json.loads(file.metadata()["gtx"])
        header.pop("sha256", None)
        return header, {name: file.get_tensor(name) for name in names}


def test_a_file_of_another_program_is_refused(tmp_path) -> None:
    save_file({"weight": torch.zeros(2)}, tmp_path / "foreign.gtx")
    refused(tmp_path / "foreign.gtx", "gtx did not write it")


def refused(path: Path, reason: str) -> None:
    with pytest.raises(gtx.InputError, match=reason) as caught:
        gtx.load(path)
    assert "\n" not in str(caught.value)


def test_another_model_of_ones_own_is_noticed(tmp_path, recwarn) -> None:
    class Distance(Score):
        def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
            return -(query - key).square().sum(-1)

    def make(score: Score) -> nn.Module:
        return standard(1, **CODE_SIZES, channels=16, layers=2, heads=2, score=score).eval()

    torch.manual_seed(0)
    network, path = make(Distance()), tmp_path / "model.gtx"
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
    task = Regression(("y",)).fit(featurise(Featuriser(), ["C", "CC"], workers=0).store.with_targets(np.eye(2)[:, :1]))
    header = ModelFileHeader(task, Featuriser(), {"name": "GraphTransformer", "arguments": {}})
    Predictor([network], header, "cpu").save(path)
    expected = Predictor([network], header, "cpu").predict(["CCO"])
    assert gtx.load(path, "cpu", model=lambda: make(Distance())).predict(["CCO"]).equals(expected)
    assert not recwarn.list
    with pytest.warns(UserWarning, match="model= computes other numbers .* were .* and are now "):
        gtx.load(path, "cpu", model=lambda: make(ScaledDotScore()))


# --- Model files at hand predict what they predicted when they were made; see `golden/README.md`.


# by file, how much the network says of a target, in the target's units; another processor rounds it otherwise
SPREAD = {"regression": 2.0, "reference": 15.0, "sequence": 5.0, "mix": 4.0, "neighbours": 4.0}
SPREAD |= dict.fromkeys(("classification", "ensemble", "multiclass"), 1.0)


def test_every_file_is_held() -> None:
    assert {file.stem for file in GOLDEN.glob("*.gtx")} == set(SPREAD)


@pytest.mark.parametrize("file", SPREAD)
def test_an_old_file_predicts_what_it_did(file: str) -> None:
    was = pd.read_json(GOLDEN / f"{file}.json", dtype=False).replace({np.nan: None})
    now = gtx.load(GOLDEN / f"{file}.gtx", device="cpu").predict(was.smiles).replace({np.nan: None})
    assert list(now) == list(was)
    for name in was:
        numbers = [isinstance(value, float) for value in was[name]]
        assert now[name][~np.array(numbers)].tolist() == was[name][~np.array(numbers)].tolist()
        before, after = (table[name][numbers].to_numpy(float) for table in (was, now))
        np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-5 * SPREAD[file])
