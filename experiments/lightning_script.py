"""A Lightning script of one's own: a table, a data module, a model, a Trainer.

python -m experiments.lightning_script examples/solvation.csv dG_water
"""

from __future__ import annotations

import sys

from pytorch_lightning import Trainer

from gtx.dataset import DataSettings
from gtx.models import standard
from gtx.molecules import Featuriser
from gtx.training import MoleculeData, PropertyModule


def main(table: str, target: str, **options: object) -> dict[str, float]:
    """Train on 80 % of the rows, print and give the scores of the test rows; options are the Trainer's."""
    data = MoleculeData.from_table(DataSettings(table, (target,)))
    read = Featuriser()
    sizes = {"atom_sizes": read.atom_sizes, "bond_sizes": read.bond_sizes, "num_descriptors": read.num_descriptors}
    model = standard(data.task.out_channels, **sizes)  # or any module: batch -> [molecules, out_channels]
    model.observe(data.train)  # gtx's own models learn here which atoms there are, and the scale of descriptors
    trainer = Trainer(reload_dataloaders_every_n_epochs=1, **options)  # batches are drawn anew each epoch
    trainer.fit(PropertyModule(model, data.task), data)
    (scores,) = trainer.test(trainer.model, data)
    return scores


if __name__ == "__main__":
    main(*sys.argv[1:], max_epochs=20)
