"""A Lightning script to start from: the best epoch, scores in the units of the table, and a model file.

python examples/lightning_script.py examples/solvation.csv dG_water model.gtx --max-epochs 20
"""

import argparse

from pytorch_lightning import Trainer, seed_everything
from pytorch_lightning.callbacks import LearningRateMonitor, ModelCheckpoint
from pytorch_lightning.loggers import CSVLogger

from gtx.prediction import Predictor
from gtx.training import MoleculeDataModule, TrainingModule


def main(table: str, target: str, file: str, **options: object) -> dict[str, float]:
    """Train on 80 % of the rows, keep the best epoch as a model file, and return the scores of the test rows.

    Args:
        table, target, file: the data, and the model file to write, for `gtx predict` and `gtx.load`.
        options: of the Trainer, such as max_epochs=20, precision="bf16-mixed" or gradient_clip_val=1.0.
    """
    seed_everything(0, workers=True)
    data = MoleculeDataModule.from_table(table, target)
    module = TrainingModule.from_data(data, "standard", channels=64)
    best = ModelCheckpoint(monitor="val_rmse")
    callbacks, logger = [best, LearningRateMonitor()], CSVLogger("logs")
    trainer = Trainer(callbacks=callbacks, logger=logger, log_every_n_steps=10, **options)
    trainer.fit(module, data)
    (scores,) = trainer.test(module, data, ckpt_path="best", weights_only=True)
    Predictor.of([module], data.featuriser, spec=module.spec, train=data.train).save(file)
    return scores


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("table", "target", "file"):
        parser.add_argument(name)
    parser.add_argument("--max-epochs", type=int, default=20)
    main(**vars(parser.parse_args()))
