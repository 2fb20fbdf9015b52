"""What training a writer of texts makes of its table, and what it refuses."""

import pytest

from gtx.base.errors import InputError
from gtx.sequence.task import SequenceGenerationTask
from gtx.training import TrainSettings
from gtx.training_data import DataSettings
from gtx.workflow import train_model
from tests.tables import ALONE, GOLDEN, molecules, read, write

NETWORK = {"channels": 16, "layers": 1, "heads": 2}
SETTINGS = TrainSettings(epochs=1, model_arguments=NETWORK, progress=False, threads=1, accelerator="cpu")


@pytest.fixture
def data(tmp_path) -> DataSettings:
    """Molecules and their SMILES, with everything wrong that can be."""
    smiles = [s for s in molecules(60)["smiles"] if "Cl" not in s]
    rows = [[s, s, ("train", "train", "val", "test")[i % 4]] for i, s in enumerate(smiles)]
    rows[0][0] = "C1CC"  # no molecule
    rows[1][1] = ""  # no target
    rows[4][1] = "CCx"  # no token
    rows[5][1] = "C" * 41  # too long
    rows[7][1] = "CCl"  # a token that no training row has
    source = str(write(tmp_path / "data.csv", rows, ["smiles", "product", "part"]))
    return DataSettings(source, task=SequenceGenerationTask("product", max_tokens=40), split_column="part", workers=0)


@pytest.mark.slow
def test_every_row_comes_out_with_a_text_or_an_error(data: DataSettings, tmp_path) -> None:
    train_model(data, SETTINGS, tmp_path / "out", **ALONE)
    rows = read(tmp_path / "out" / "predictions.csv")
    assert [i for i, row in enumerate(rows) if row["error"]] == [0, 4, 5]
    assert all(bool(row["product_log_probability"]) != bool(row["error"]) for row in rows)
    assert rows[4]["error"].endswith("value \"CCx\": expected tokens, got 'x' at character 3 of 'CCx'")
    assert "has 41 tokens; the limit is 40" in rows[5]["error"]
    assert 'row 2, column "product", value "": there is no sequence to learn' in rows[1]["warning"]
    assert 'row 8, column "product", value "CCl": not in the vocabulary of ' in rows[7]["warning"]
    assert "'Cl'; no training row has it, so the model cannot write it" in rows[7]["warning"]
    assert [rows[i]["split"] for i in (0, 1, 4, 5, 7)] == ["", "", "", "", "test"]


def test_numbers_and_sequences_do_not_go_on_from_each_other(data: DataSettings, tmp_path) -> None:
    start = GOLDEN / "sequence.gtx"
    numbers = DataSettings(data.data, ("part",), workers=0)
    for table, settings in ((data, SETTINGS), (numbers, TrainSettings())):
        with pytest.raises(InputError, match="does not support training that starts from another model"):
            train_model(table, settings, tmp_path / "out", start=start)
