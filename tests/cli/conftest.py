"""A table at hand."""

import pytest


@pytest.fixture
def data_csv(tmp_path, monkeypatch) -> None:
    """The working folder holds `data.csv`."""
    (tmp_path / "data.csv").write_text("smiles,y\nCCO,1\nCCN,2\n")
    monkeypatch.chdir(tmp_path)
