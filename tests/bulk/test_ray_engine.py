"""One session of Ray with two actors: what they write, a death amid the work, and the pages' example."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from gtx.bulk import DataFramePredictor, predict_folder_of_tables
from gtx.errors import InputError

from .conftest import MODEL, dying

pytestmark = pytest.mark.slow

ray = pytest.importorskip("ray", reason="Ray is not installed: in the folder of gtx, pip install '.[ray]'")

PAGE = Path(__file__).parents[2] / "docs" / "frames.md"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Ray, started in a folder of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("ray"))
        handler = signal.getsignal(signal.SIGTERM)
        ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 * 2**20)
        signal.signal(signal.SIGTERM, handler)  # Ray's own ends other tests
        yield
        ray.shutdown()


def test_actors_write_what_processes_do_though_one_of_them_is_killed(
    session: None, library: Path, tmp_path: Path
) -> None:
    once = tmp_path / "killed"

    def the_first_to_see_ten_atoms(store: Any) -> None:
        if (store.sizes == 10).any() and not once.exists():
            once.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    load = dying(the_first_to_see_ten_atoms)
    outcome = predict_folder_of_tables(MODEL, library, tmp_path / "out", engine="ray", shard_rows=10, load=load)
    assert once.exists() and ray.is_initialized()
    assert (outcome.row_log.rows, outcome.shards, outcome.problems) == (55, 7, [])
    predict_folder_of_tables(MODEL, library, tmp_path / "here", workers=0, shard_rows=10, device="cpu")
    parts = sorted(path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*.parquet"))
    assert len(parts) == 7
    for part in parts:
        found, expected = (pq.ParquetFile(tmp_path / name / part).read().to_pandas() for name in ("out", "here"))
        pd.testing.assert_frame_equal(
            found, expected, rtol=1e-4, atol=1e-5
        )  # they have more molecules in hand together


def test_the_example_of_the_page_runs(session: None) -> None:
    for folder in ("run", "molecules"):
        Path(folder).mkdir()
    shutil.copy(MODEL, "run/model.gtx")
    frame = pd.DataFrame({"id": range(20), "smiles": ["C" * (1 + i % 7) + "O" for i in range(19)] + ["C1CC"]})
    frame.to_csv("molecules/a.csv", index=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    (block,) = (b for b in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "import ray" in b)
    exec(block, {})
    found = pd.read_parquet("by-ray").sort_values("id", ignore_index=True)
    pd.testing.assert_frame_equal(found, DataFramePredictor("run/model.gtx", device="cpu")(frame), check_dtype=False)


def test_more_actors_than_there_is_room_for_are_refused(session: None, library: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="workers: expected 1 to 2, for which Ray has room, got 3"):
        predict_folder_of_tables(MODEL, library, tmp_path / "out", engine="ray", workers=3)
