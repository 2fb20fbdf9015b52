"""A Lightning script to start from: a table, a data module, a model, a Trainer, and a model file at the end.

python examples/lightning_script.py examples/solvation.csv dG_water model.gtx
"""

from __future__ import annotations

import argparse
import sys

from pytorch_lightning import Trainer

from gtx import InputError
from gtx.models import build_model
from gtx.molecules import Featuriser
from gtx.prediction import Predictor
from gtx.training import MoleculeDataModule, TrainedEnsembleMember, TrainingModule
from gtx.training.optimise import BestEpoch, WeightAverage
from gtx.training_data import DataSettings


def main(table: str, target: str, file: str, **options: object) -> dict[str, float]:
    """Train on 80 % of the rows, write the best epoch as a model file, and return the scores of the test rows.

    Args:
        table, target: the data.
        file: the model file, for `gtx predict` and `gtx.load`.
        options: of the Trainer, such as precision="bf16-mixed" or gradient_clip_val=1.0.
    """
    read = Featuriser()
    data = MoleculeDataModule.from_table(DataSettings(table, (target,), featuriser=read))
    sizes = {"atom_sizes": list(read.atom_sizes), "bond_sizes": list(read.bond_sizes)}
    arguments = {"out_channels": data.task.out_channels, **sizes, "num_descriptors": read.num_descriptors}
    spec = {"name": "standard", "arguments": arguments}
    model = build_model(spec)  # or any module: batch -> [molecules, out_channels]
    model.observe(data.train)  # gtx's own models learn here which atoms there are, and the scale of descriptors

    average = WeightAverage(0.99)  # validation sees the averaged weights
    best = BestEpoch(average, patience=0)
    trainer = Trainer(callbacks=[average, best], num_sanity_val_steps=0, **options)
    module = TrainingModule(model, data.task)
    trainer.fit(module, data)

    model.load_state_dict(best.weights)
    (scores,) = trainer.test(module, data)
    member = TrainedEnsembleMember(model.cpu().eval(), data.task, [], best.epoch, best.score)
    Predictor.of([member], read, spec=spec, train=data.train).save(file)
    return scores


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", help="a CSV with SMILES")
    parser.add_argument("target", help="the column to learn")
    parser.add_argument("file", help="the model file to write")
    parser.add_argument("--max-epochs", type=int, default=20)
    try:
        main(**vars(parser.parse_args()))
    except InputError as reason:
        sys.exit(f"error: {reason}")
