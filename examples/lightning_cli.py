"""The same by Lightning's command line: python examples/lightning_cli.py fit --config examples/lightning.yaml."""

from pytorch_lightning.cli import LightningCLI

from gtx.training import MoleculeDataModule, TrainingModule


def data(table: str, target: str, split: str = "random") -> MoleculeDataModule:
    """Read a table."""
    return MoleculeDataModule.from_table(table, target, split=split)


def model(data: MoleculeDataModule, name: str = "standard", channels: int = 64) -> TrainingModule:
    """Make a named model."""
    return TrainingModule.from_data(data, name, channels=channels)


class CommandLine(LightningCLI):
    """Command line whose model is made for its data."""

    def add_arguments_to_parser(self, parser):
        parser.link_arguments("data", "model.data", apply_on="instantiate")


if __name__ == "__main__":
    CommandLine(model, data, seed_everything_default=0)
