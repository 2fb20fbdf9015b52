"""Worker processes that die, and those whose parent does."""

import os
import signal
import time
from pathlib import Path

import pytest

import gtx
from gtx.base.errors import InputError
from gtx.data.featurising import DEADLY, make_process_pool, map_in_workers
from gtx.prediction import predict_table
from tests.forks import until, use_forks
from tests.prediction.dying import MODEL, dying
from tests.tables import read
from tests.training.distributed import FORKS

pytestmark = pytest.mark.slow


def together(texts: list[str]) -> list[str]:
    if len(texts) > 1 or texts == ["alone"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return texts


@pytest.mark.usefixtures("forks")
def test_what_is_no_row_to_leave_out_ends_in_one_line() -> None:
    with pytest.raises(InputError, match="end at 2 rows together, and at none alone: is there"):
        list(map_in_workers(together, [(["a", "b"],)], 1))
    with pytest.raises(InputError, match=f"^alone {DEADLY}$"):  # what comes back has no place for an error
        list(map_in_workers(together, [(["alone"],)], 1))


@pytest.mark.usefixtures("forks")
def test_a_table_is_predicted_though_one_of_its_rows_ends_workers(tmp_path) -> None:
    def of_ten_atoms(store: object) -> None:
        if (store.sizes == 10).any():
            os.kill(os.getpid(), signal.SIGKILL)

    predictor = dying(of_ten_atoms)
    outcome = predict_table(predictor, ["CC", "C" * 10, "CCC"], tmp_path / "out.csv", workers=1)
    assert outcome.row_log.error_counts == {"with an unusable molecule": 1} and outcome.written == 3
    predict_table(gtx.load(MODEL, device="cpu"), ["CC", "CCC"], tmp_path / "whole.csv", workers=0)
    first, deadly, last = read(tmp_path / "out.csv")
    assert DEADLY in deadly["error"] and not (first["warning"] or deadly["warning"] or last["warning"])
    for row, other in zip((first, last), read(tmp_path / "whole.csv"), strict=True):
        assert float(row["gap_pred"]) == pytest.approx(float(other["gap_pred"]), abs=1e-4)


def hang(folder: Path) -> None:
    (folder / str(os.getpid())).touch()
    time.sleep(600)


def start_workers(folder: Path) -> None:
    """Workers of each kind, which are forks: those have less to import."""
    use_forks(pytest.MonkeyPatch())
    pool = make_process_pool(1)
    pool.submit(hang, folder)
    list(map_in_workers(hang, [(folder,)], 1))


def test_workers_end_with_a_parent_that_is_killed(tmp_path) -> None:
    parent = FORKS.Process(target=start_workers, args=(tmp_path,))
    parent.start()
    until(lambda: len(list(tmp_path.iterdir())) == 2)
    orphans = [int(file.name) for file in tmp_path.iterdir()]
    parent.kill()
    parent.join()
    try:
        until(lambda: not any(map(_runs, orphans)))
    finally:
        for orphan in filter(_runs, orphans):
            os.kill(orphan, signal.SIGKILL)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
