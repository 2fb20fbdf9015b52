"""What cannot be trained is refused in one line, before anything is trained."""

from typing import Any

import pytest

from gtx.attention import ScaledDotScore
from gtx.base.errors import InputError
from gtx.data import FeatureColumns
from gtx.molecules import Featuriser
from gtx.sequence.task import SequenceGenerationTask
from gtx.tasks import BinaryClassification, Regression
from gtx.training import TrainSettings
from gtx.training_data import DataSettings
from gtx.workflow import train_model
from tests.tables import TINY, molecules, write

HEADER = ["id", "structure SMILES", "gap", "dipole", "ph"]
WRITER = {"task": SequenceGenerationTask("structure SMILES"), "smiles_column": None}
BONDS, PH, STANDARD = FeatureColumns(bonds=("id",)), FeatureColumns(("ph",)), Featuriser(standardise=True)
PAIRS = {"featuriser": Featuriser(components=("structure SMILES", "id")), "smiles_column": None}
SIMILAR, PARTS = Regression("gap", uncertainty="similarity"), ["substructures", "foundation"]


def model(name: str, **arguments: object) -> dict[str, Any]:
    return {"model": name, "model_arguments": arguments}


@pytest.mark.parametrize(
    ("data", "training", "message"),
    [
        ({}, model("matt"), r"no model 'matt'; did you mean 'mat'\?"),
        ({}, model("mat"), "mat needs coordinates: .*`conformers`"),
        ({"featuriser": Featuriser(conformers=True)}, model("gps"), "gps uses no coordinates"),
        ({}, model("tanimoto", layers=2), "no argument 'layers'; it has labels"),
        ({}, model("standard", score=ScaledDotScore()), "score is a ScaledDotScore, .*: make the model yourself"),
        ({}, model("gat", head=5), r"gat has no argument 'head'; did you mean 'heads'\?"),
        ({}, model("egt", score="GATv2"), "egt decides 'score' itself"),
        ({}, model("standard", score="GATv2"), "expected a Score of gtx.attention"),
        ({}, model("standard", layers=0), "expected layers of at least 1, got 0"),
        ({}, model("kernel") | {"lr": 0.1, "keep_by": "mae"}, "`epochs`, `lr`, `keep_by`"),
        ({}, model("tanimoto"), "tanimoto is solved in closed form and has no training by epochs: leave out"),
        ({}, {"kernel_parts": ["foundation"]}, "expected substructures among them, got foundation"),
        ({}, {"model": "tanimoto", "kernel_parts": PARTS}, "model tanimoto compares substructures alone"),
        ({"features": PH}, {"model": "tanimoto"}, "tanimoto reads molecules alone: leave out `feature_columns`"),
        ({"features": BONDS}, {"model": "tanimoto"}, "reads molecules alone: leave out `bond_feature_columns`"),
        ({"features": BONDS}, model("gat"), "embeds neither bonds nor pairs cannot read bond_features"),
        ({"task": SIMILAR}, {"training_rows": False}, "compares with training rows: leave out training_rows=False"),
        (WRITER, {"folds": 2}, "has no other folds than 1"),
        (WRITER, model("standard", channels=15, heads=2), "the model cannot be made: .*15 channels"),
        ({"val": __file__}, {"folds": 3}, "val: with `folds`"),
        ({}, {"folds": 100}, "100 folds need as many groups"),
        ({"target_columns": ("nothing",)}, {}, "no column 'nothing'; the columns are 'id', 'structure SMILES', 'gap'"),
        ({"target_columns": ()}, {}, "say what to predict"),
        ({"smiles_column": "gap"}, {}, "holds the molecules"),
        ({"task": BinaryClassification(["gap", "dipole"])}, {}, "classification needs exactly two"),
        ({"on_error": "fail"}, {}, "row 8, "),
        ({"on_error": "ignore"}, {}, "on_error.*'report' or 'fail'"),
        ({"weight_column": "gap"}, {}, "'gap' is a target"),
        ({"weight_column": "v"}, {}, "there is no column 'v'"),
        ({"task": Regression("gap", relation_column="nothing")}, {}, "there is no column 'nothing'"),
        ({"features": FeatureColumns(("gap",))}, {}, "'gap' is a target"),
        ({"features": FeatureColumns(("pH",))}, {}, r"no column 'pH'; did you mean 'ph'\? the columns are [^;]*$"),
        ({"features": BONDS, "featuriser": STANDARD}, {}, "`bond_.* as they are written: leave out `standardise`"),
        (PAIRS | {"features": BONDS}, {}, "are for one molecule a row"),
        ({"task": Regression("gap", level="atom"), "featuriser": STANDARD}, {}, "written: leave out `standardise`"),
        ({"split_column": "id"}, {}, "names no row 'train'"),
        ({"split_column": "part", "test": "test.csv"}, {}, "given twice: by a column and by files; give one of them"),
        ({"test_folds": 3, "val": "val.csv"}, {}, "given twice: by test folds and by files; give one of them"),
        ({"val": "-"}, {}, "expected a file, by whose content a run resumes, got - for standard input"),
        ({"split": "clusters"}, {}, "split: expected one of random, .*, got 'clusters'; did you mean 'cluster'"),
        ({"split": "cluster", "split_by": "lab"}, {}, "cluster reads no column; `split_by` goes with group and time"),
        ({"split": "time"}, {}, "split time reads a column: say which with `split_by`"),
        ({"split": "time", "split_by": "pH"}, {}, r"data.csv: there is no column 'pH'; did you mean 'ph'\?"),
        ({"split": "time", "split_by": "ph", "test_folds": 3}, {}, "folds; these do: random, scaffold, cluster, group"),
        ({"seed": -1}, {}, "split_seed: expected a value 0 or more, got -1"),
        ({"test_folds": 1}, {}, "test_folds: expected 2 or more, got 1"),
        ({"test_folds": 3, "test_fold": 4}, {}, "test_fold: expected 1 to 3, got 4"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_it_is_said_in_a_line(data: dict, training: dict, message: str, tmp_path) -> None:
    given = molecules(40)[["smiles", "gap", "dipole"]].to_numpy().tolist()
    rows = [[f"{i:03d}", *row, i] for i, row in enumerate(given)]
    rows[7][1] = "C1CC"
    usual = {"data": str(write(tmp_path / "data.csv", rows, HEADER)), "smiles_column": HEADER[1], "workers": 0}
    usual |= {} if "task" in data else {"target_columns": ("gap", "dipole")}
    with pytest.raises(InputError, match=message) as caught:
        train_model(DataSettings(**usual | data), TrainSettings(**TINY | training), tmp_path / "out")
    assert "\n" not in str(caught.value)
