"""A study of settings: it resumes, prunes, notes what fails, and never sees the rows that score it."""

import math
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import optuna
import pytest
import yaml

from gtx.base.errors import InputError
from gtx.cli import main
from gtx.tasks import Regression
from gtx.training import TrainingModule, TrainSettings
from gtx.training_data import DataSettings, load_training_table
from gtx.workflow import run as workflow_run
from gtx.workflow import tuning
from gtx.workflow.baselines import Baselines
from gtx.workflow.tuning import ARCHITECTURE, SCRATCH, Pruning, Space, Tuned, trial_folder, tune
from tests.tables import TINY, TINY_WORDS, molecules, read, write, write_molecules
from tests.training.distributed import FORKS

pytestmark = pytest.mark.slow

SETTINGS = TrainSettings(**TINY | {"epochs": 2, "blend": "no"})
HOW = {"trials": 2, "models": ("standard",), "chosen": ("epochs",)}
FIRST = 0
"""The process of the test; another one has 0."""
COLUMNS = ["smiles", "solvation_water"]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> DataSettings:
    table = write_molecules(tmp_path_factory.mktemp("table") / "t.csv", 40, *COLUMNS[1:])
    return DataSettings(str(table), COLUMNS[1:], workers=0)


@pytest.fixture
def unscored(monkeypatch) -> list[Path]:
    """What was chosen is not trained to its end, scored and reported, which takes seconds."""
    scored: list[Path] = []

    def train(data: object, settings: object, folder: Path, **how: object) -> SimpleNamespace:
        folder.mkdir(parents=True, exist_ok=True)
        scored.append(folder)
        return SimpleNamespace(metrics={part: {"rmse": float(len(scored))} for part in ("val", "test")})

    monkeypatch.setattr(tuning, "train_model", train)
    return scored


@pytest.fixture
def made_up(monkeypatch, unscored: list[Path]) -> Callable[[dict], None]:
    """Trainings take a moment: a trial scores by its learning rate, or does what is given for its number."""
    happens: dict[int, Callable[[], float]] = {}

    def score(run: workflow_run.Run, pruning: Pruning) -> float:
        number = pruning.trial.number
        value = happens[number]() if number in happens else abs(math.log(run.settings.lr / 1e-3))
        rows = [{"epoch": epoch + 1.0, "val_score": value} for epoch in range(run.settings.epochs)]
        for epoch in range(run.settings.epochs):
            pruning(0, rows[: epoch + 1])
        return value

    monkeypatch.setattr(tuning, "validation_score", score)
    return happens.update


def results(tuned: Tuned, study: str = "main") -> list[tuple[dict, float | None]]:
    return [(trial.params, trial.value) for trial in tuned.trials[study]]


def test_a_study_resumes_where_it_was_interrupted(data, unscored, tmp_path, monkeypatch) -> None:
    settings = replace(SETTINGS, keep_by="r2")
    whole = tune(data, settings, tmp_path / "whole", **HOW)
    for one in whole.trials["main"]:  # a trial is scored as its epoch was chosen
        log = read(trial_folder(whole.out, "main", one) / "members" / "0" / "log.csv")
        assert one.value == pytest.approx(-float(log[-1]["val_r2"]), rel=1e-4)
    step, epochs = TrainingModule.training_step, []

    def interrupted(self: TrainingModule, *batch: object) -> object:
        epochs.append(self.current_epoch)
        if len(told) == 1 and self.current_epoch == 1:
            raise KeyboardInterrupt
        return step(self, *batch)

    told: list[object] = []
    monkeypatch.setattr(TrainingModule, "training_step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tune(data, settings, tmp_path / "out", **HOW, tell=lambda *one: told.append(one))
    epochs.clear()
    told += [None]  # it goes on
    again = tune(data, settings, tmp_path / "out", **HOW)
    assert epochs[0] == 1  # of the interrupted trial, the first epoch is not trained twice
    assert [trial.number for trial in again.trials["main"]] == [0, 2] and results(again) == results(whole)
    assert again.best.params == whole.best.params and yaml.safe_load((tmp_path / "out" / "best.yaml").read_text())
    trainings = len(epochs)
    assert tune(data, settings, tmp_path / "out", **HOW).was_finished and len(epochs) == trainings
    with pytest.raises(InputError, match=r"another settings|settings.lr \(0.001 there, 0.002 now\)"):
        tune(data, replace(settings, lr=2e-3), tmp_path / "out", **HOW)


def test_a_trial_is_scored_by_the_outputs_of_the_model_alone(data: DataSettings, tmp_path) -> None:
    """Without the similarity to training rows, which comes after them for `--uncertainty similarity`."""
    task, settings = Regression(COLUMNS[1], uncertainty="similarity"), replace(SETTINGS, epochs=1, keep_by="loss")
    with workflow_run.Run.load(replace(data, task=task), settings, tmp_path) as run:
        score = tuning.validation_score(run, lambda *_: None)
        blended, val = run.blend(*run.fit()), run.molecules.split["val"]
    errors = (blended.predictions.mean[val] - run.molecules.y[val]) / run.task.scaler.sd.numpy()
    assert score == pytest.approx(np.square(errors).mean(), rel=1e-4)


def tune_until_killed(data: DataSettings, out: Path) -> None:
    """Run a study in this process, which kills itself in the second epoch of its first trial."""
    step = TrainingModule.training_step

    def killed(self: TrainingModule, *batch: object) -> object:
        if self.current_epoch == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(self, *batch)

    TrainingModule.training_step = killed
    tune(data, SETTINGS, out, **HOW)


def test_a_trial_whose_process_is_killed_is_run_again(data: DataSettings, unscored: list[Path], tmp_path) -> None:
    process = FORKS.Process(target=tune_until_killed, args=(data, tmp_path))
    process.start()
    process.join(240)
    assert process.exitcode == -signal.SIGKILL
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    study = optuna.load_study(study_name="main", storage=storage)
    assert [trial.state.name for trial in study.trials] == ["RUNNING", "WAITING"][: len(study.trials)]
    again = tune(data, SETTINGS, tmp_path, **HOW)
    states = [trial.state.name for trial in optuna.load_study(study_name="main", storage=storage).trials]
    assert sorted(states) == ["COMPLETE", "COMPLETE", "FAIL"] and len(again.trials["main"]) == 2
    assert sum(bool(trial.user_attrs.get("default")) for trial in again.trials["main"]) == 1


def test_the_first_trial_is_the_default_and_more_trials_are_added_when_asked(data, made_up, tmp_path) -> None:
    first = tune(data, SETTINGS, tmp_path, **HOW)
    assert first.best.user_attrs["default"] and first.best.params["lr"] == SETTINGS.lr and first.best.value == 0
    assert not first.was_finished and (tmp_path / "best").is_dir()
    more = tune(data, SETTINGS, tmp_path, **HOW | {"trials": 6})
    assert len(more.trials["main"]) == 6 and results(more)[:2] == results(first) and not more.was_finished
    assert (tmp_path / "importance.png").exists() and (tmp_path / "history.png").exists()
    assert tune(data, SETTINGS, tmp_path, **HOW | {"trials": 5}).was_finished  # fewer than there are
    brief = tune(data, SETTINGS, tmp_path / "brief", **HOW | {"trials": 50}, hours=1e-9)
    assert 1 <= len(brief.trials["main"]) < 50  # they end when the hours are over


def told_by_two(folder: Path, study: str, trial: optuna.trial.FrozenTrial, best: object) -> None:
    """Note who ran a trial; the first process waits until another has run one."""
    (folder / f"{trial.number}.{os.getpid()}").touch()
    ends = time.monotonic() + 120
    while os.getpid() == FIRST and time.monotonic() < ends and {*processes(folder).values()} == {FIRST}:
        time.sleep(0.05)


def processes(folder: Path) -> dict[int, int]:
    return {int(file.stem): int(file.suffix[1:]) for file in folder.iterdir()}


@pytest.mark.usefixtures("forks")
def test_two_processes_share_the_trials_of_a_study(data, made_up, tmp_path, monkeypatch) -> None:
    (told := tmp_path / "told").mkdir()
    monkeypatch.setattr("tests.workflow.test_tuning.FIRST", os.getpid())
    study = tune(data, SETTINGS, tmp_path / "out", **HOW | {"trials": 4}, jobs=2, tell=partial(told_by_two, told))
    assert [trial.state.name for trial in study.trials["main"]] == ["COMPLETE"] * 4
    assert sorted(processes(told)) == [0, 1, 2, 3] and len({*processes(told).values()}) == 2
    assert len({str(sorted(trial.params.items())) for trial in study.trials["main"]}) == 4  # each has its own seed
    with pytest.raises(InputError, match="jobs: expected 1 or more, got 0"):
        tune(data, SETTINGS, tmp_path / "out", **HOW, jobs=0)


def test_a_table_that_cannot_be_used_begins_no_study_and_ends_none(data, made_up, tmp_path) -> None:
    out, wrong = tmp_path / "out", replace(data, target_columns=["solvation"])
    with pytest.raises(InputError, match="there is no column 'solvation'"):
        tune(wrong, SETTINGS, out, **HOW)
    with pytest.raises(InputError, match="keep_by: expected one of rmse, mae, r2, loss for regression, got 'rsme'"):
        tune(data, replace(SETTINGS, keep_by="rsme"), out, **HOW)
    told: list[str] = []
    first = tune(data, SETTINGS, out, **HOW, describe=told.append)  # the folder is free
    assert told[0].endswith("t.csv: 40 rows: 40 read, 0 errors")
    assert any("32 train, 4 val, 4 test" in line for line in told) and any("mostly luck" in line for line in told)
    with pytest.raises(InputError, match="there is no column 'solvation'"):
        tune(wrong, SETTINGS, out, **HOW, overwrite=True)
    assert results(tune(data, SETTINGS, out, **HOW)) == results(first)


def test_what_fails_is_noted_and_what_falls_behind_is_pruned(data, made_up, tmp_path) -> None:
    def broken() -> float:
        raise MemoryError("of 3 GiB")

    made_up({1: broken, 2: lambda: math.nan, 9: lambda: 99.0, 10: lambda: -1.0})
    study = tune(data, SETTINGS, tmp_path, **HOW | {"trials": 11})
    rows = read(tmp_path / "trials.csv")
    states = [row["state"] for row in rows]
    assert states[1:3] == ["FAIL", "FAIL"] and states[9:] == ["PRUNED", "COMPLETE"] and len(states) == 11
    assert rows[1]["user_attrs_error"] == "MemoryError: of 3 GiB" and "nan" in rows[2]["user_attrs_error"]
    assert study.best.number == 10
    made_up(dict.fromkeys(range(2), broken))
    with pytest.raises(InputError, match="none of 2 trials of study 'main' came to its end; the first error: Mem"):
        tune(data, SETTINGS, tmp_path / "none", **HOW | {"trials": 2})


def test_a_bad_trial_is_pruned_at_a_stage_and_the_defaults_never() -> None:
    study = optuna.create_study(pruner=optuna.pruners.MedianPruner(n_startup_trials=1, n_warmup_steps=3))

    def rows(epochs: int, score: float) -> list[dict[str, float]]:
        return [{"epoch": i + 1.0, "val_score": score} for i in range(epochs)]

    first = study.ask()
    Pruning(first, 20, enabled=True)(0, rows(20, 1.0))
    study.tell(first, 1.0)
    bad = Pruning(study.ask(), 40, enabled=True)
    for epochs in range(1, 12):  # as far as the second stage of ten
        bad(0, rows(epochs, 2.0))
    with pytest.raises(optuna.TrialPruned):
        bad(0, rows(12, 2.0))
    spared, good = Pruning(study.ask(), 40, enabled=False), Pruning(study.ask(), 40, enabled=True)
    spared(0, rows(40, 2.0))
    good(0, rows(40, 0.5))
    assert study.trials[0].intermediate_values == dict.fromkeys(range(1, 11), 1.0)


def test_damaged_files_are_written_anew_or_named(data: DataSettings, made_up: Callable[[dict], None], tmp_path) -> None:
    first = tune(data, SETTINGS, tmp_path, **HOW)
    for damaged in ("{", '{"stamp": {"main": [1, 3]}}'):
        (tmp_path / "tuning.json").write_text(damaged)
        assert tune(data, SETTINGS, tmp_path, **HOW).scores.keys() == first.scores.keys() == {"main"}
    database = tmp_path / "study.db"
    content = database.read_bytes()
    database.write_bytes(b"no database" + content)
    with pytest.raises(InputError, match=r"study\.db cannot be read \(.*\); `overwrite` starts anew"):
        tune(data, SETTINGS, tmp_path, **HOW)
    database.write_bytes(content)
    for damaged in ("a: [", ""):
        (tmp_path / "study.yaml").write_text(damaged)
        with pytest.raises(InputError, match="holds a study whose settings cannot be read"):
            tune(data, SETTINGS, tmp_path, **HOW)


def test_folds_are_studies_of_their_own(data: DataSettings, made_up: Callable[[dict], None], tmp_path) -> None:
    study = tune(data, SETTINGS, tmp_path, **HOW | {"trials": 1}, test_folds=2)
    assert [len(trials) for trials in study.trials.values()] == [1] * 3
    assert list(study.scores) == ["main", "fold-1", "fold-2"]
    with pytest.raises(InputError, match="there is no model 'gsp'; did you mean 'gps'"):
        tune(data, SETTINGS, tmp_path / "no", models=("standard", "gsp"))
    with pytest.raises(InputError, match="by test folds and by a column"):
        tune(replace(data, split_column="part"), SETTINGS, tmp_path / "no", test_folds=3)


def test_the_rows_that_score_a_study_are_never_seen_in_choosing(data, unscored, tmp_path, monkeypatch) -> None:
    """Their targets can be anything, and nothing changes; and they are not in the data that trials get."""
    rows = molecules(40)[COLUMNS].to_numpy().tolist()
    outer = load_training_table(replace(data, test_folds=2, test_fold=2))
    for i in outer.rows[outer.split["test"]]:
        rows[i][1] = 1e4 * (i + 1)
    other = replace(data, data=str(write(tmp_path / "t.csv", rows, COLUMNS)))
    seen: dict[str, set[str]] = {}
    fit = workflow_run.Run.fit

    def looked(self: workflow_run.Run, *more: object) -> object:
        seen.setdefault(self.folder.path.parent.name, set()).update(self.molecules.smiles)
        return fit(self, *more)

    monkeypatch.setattr(workflow_run.Run, "fit", looked)
    how = HOW | {"trials": 1, "test_folds": 2}
    whole, changed = (tune(each, SETTINGS, tmp_path / name, **how) for name, each in (("a", data), ("b", other)))
    assert not seen["fold-2"] & {outer.smiles[i] for i in outer.split["test"]} and len(seen["fold-2"]) > 15
    one, two = (results(tuned, "fold-2") for tuned in (whole, changed))
    assert one == two and len(one) == 1
    one, two = (results(tuned, "fold-1") for tuned in (whole, changed))
    assert one != two  # where these rows train


def test_choices_apply_to_what_they_can_change() -> None:
    space = Space(replace(TrainSettings(), epochs=20), 900, (SCRATCH, "foundation"), ("standard", "gps"))
    names = {"start", "model", *ARCHITECTURE, "lr", "batch_molecules", "epochs"}
    assert space.defaults_of(SCRATCH).keys() == names
    assert space.defaults_of("foundation").keys() == {"start", "lr", "batch_molecules", "epochs"}
    fixed = optuna.trial.FixedTrial({**space.defaults_of(SCRATCH), "model": "gps"})
    assert set(space.draw(fixed)) == names - {"encodings"}
    settings, start = space.settings(space.defaults_of("foundation"))
    assert start == "foundation" and not settings.model_arguments
    settings, start = space.settings(space.defaults_of(SCRATCH))
    assert start is None and settings.model_arguments["encodings"] == ["bonds", "path", "walk", "degree"]
    own = replace(space, base=replace(space.base, model_arguments={"layers": 3}), starts=(SCRATCH,), chosen={"lr"})
    assert own.defaults_of(SCRATCH).keys() == names - {"start", "layers", "lr"}


def test_a_config_of_the_best_trial_trains(data: DataSettings, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workflow_run, "score_baselines", lambda *_: Baselines({}, {}))
    monkeypatch.setattr("gtx.report.write_run_report", lambda *_: [])
    words = [*TINY_WORDS, "--workers=0", "--accelerator=cpu", "--blend=no"]
    words = ["tune", data.data, "--target-columns", COLUMNS[1], *words, "--models", "standard", "--out=study"]
    assert main([*words, "--trials=2"]) == 0
    said = capsys.readouterr()
    assert "40 rows: 40 read, 0 errors" in said.err and "so the validation score of the tuned" in said.out
    assert "trial 1: " in said.err and "config  study/best.yaml" in said.out
    assert main(["train", "--config", "study/best.yaml"]) == 0
    assert "The run in study/best is finished" in capsys.readouterr().out
    assert main(["train", "--config=study/best.yaml", "--out", "run", "--no-baselines"]) == 0
    one, two = (yaml.safe_load((Path(name) / "metrics.json").read_text()) for name in ("study/best", "run"))
    assert one["test"] == two["test"] and one["val"] == two["val"]
    capsys.readouterr()
    assert main([*words, "--trials=2"]) == 0
    assert "The study in study is finished: 2 complete" in capsys.readouterr().out
