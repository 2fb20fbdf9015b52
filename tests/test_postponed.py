"""Modules of other packages that are imported at first use."""

from __future__ import annotations

import inspect
import sys

import pytest

from gtx.lazy import Postponed


@pytest.fixture
def package(tmp_path, monkeypatch):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "__init__.py").write_text("import made.slow\nfrom made import slow as again\n")
    (tmp_path / "made" / "slow").mkdir()
    text = "import made\nmade.runs = getattr(made, 'runs', 0) + 1\nfrom made.slow.inner import SEVEN\nVALUE = SEVEN\n"
    (tmp_path / "made" / "slow" / "__init__.py").write_text(text)
    (tmp_path / "made" / "slow" / "inner.py").write_text("import made.slow\nSEVEN = 7\nruns = made.runs\n")
    monkeypatch.syspath_prepend(tmp_path)
    finder = Postponed("made.slow", "made.absent")
    yield
    sys.meta_path.remove(finder)
    for name in [name for name in sys.modules if name.partition(".")[0] == "made"]:
        del sys.modules[name]


def test_a_postponed_module_runs_once_when_a_name_is_read(package):
    import made

    assert made.again is made.slow
    assert inspect.getmodule(made.slow) is made.slow and made.slow.__file__.endswith("__init__.py")
    assert not hasattr(made, "runs")
    from made.slow.inner import runs  # runs the package first, as without the finder

    assert (runs, made.runs, made.slow.VALUE) == (1, 1, 7)
    with pytest.raises(AttributeError, match="absent"):
        made.slow.absent  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        import made.absent
