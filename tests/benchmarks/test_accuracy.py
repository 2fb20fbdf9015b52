"""The default model is as accurate as it was: `pytest -m benchmark`, a few minutes on one core.

Shortened trainings of sets in `experiments/RESULTS.md`, scored on validation rows, the mean over two seeds. When the
bands were set the means were 0.313 (seeds 0.303, 0.324), 0.275 (0.272, 0.278) and 0.953 (0.951, 0.954): a band leaves
about twice the scatter of seeds, so a change that costs accuracy leaves it. To set one anew, run
`pytest -m benchmark -s` and say in the commit why it moved.
"""

import statistics

import pytest

import experiments  # noqa: F401  # which adds the benchmarks' sets
from gtx.data.public_datasets import load_public_dataset
from gtx.training import TrainSettings
from gtx.training_data import DataSettings
from gtx.workflow import train_model

pytestmark = pytest.mark.benchmark
SEEDS = (0, 1)


@pytest.mark.parametrize(
    ("name", "targets", "split", "epochs", "metric", "limit"),  # the mean over seeds is no worse than the limit
    [
        ("mat/freesolv", ("y",), "split_random_0", 30, "rmse", 0.335),
        ("mat/esol", ("y",), "split_random_0", 20, "rmse", 0.285),
        ("scaffold/bbbp", (), "split", 10, "roc_auc", 0.945),
    ],
)
def test_accuracy_stays_within_its_band(
    name: str, targets: tuple[str, ...], split: str, epochs: int, metric: str, limit: float, tmp_path
) -> None:
    named = load_public_dataset(name)
    data = DataSettings(str(named.path), targets or named.targets, split_column=split, workers=0)
    scores = []
    for seed in SEEDS:
        settings = TrainSettings(epochs=epochs, seed=seed, threads=1, progress=False)
        outcome = train_model(data, settings, tmp_path / str(seed), baselines=False)
        scores.append(outcome.metrics["val"][metric])
    mean = statistics.mean(scores)
    print(f"\n{name}: validation {metric} {mean:.4f}, by seed {[round(score, 4) for score in scores]}")
    better = mean >= limit if metric == "roc_auc" else mean <= limit
    assert better, f"{name}: validation {metric} {mean:.4f} over seeds {SEEDS}, expected {limit} or better"
