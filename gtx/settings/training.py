"""Options of training, from which the command line, `config.yaml` and the estimators are made."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from gtx.base.schema import LARGEST, Storable, check_fields
from gtx.settings import option

Count = Annotated[int, Field(ge=1, le=LARGEST)]
AboveZero = Annotated[float, Field(gt=0, allow_inf_nan=False)]
AtLeastZero = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, lt=1)]
Arguments = dict[str, Storable]


@dataclass(frozen=True)
class TrainSettings:
    """Settings of the model and its training, which are also options of `gtx train`; each field contains a help text.

    Raises:
        InputError: a value is out of range.
    """

    model: str = option("standard", "architecture; gtx models lists them", common=True)
    model_arguments: Arguments = option({}, "arguments of the architecture, such as channels=128 layers=6", common=True)
    separate_encoders: bool = option(
        False, "for rows of several molecules, use a separate encoder for each; by default they share one"
    )

    epochs: Count | None = option(
        None,
        "passes over the training molecules; default: 60, or 20 for classification, which overfits sooner",
        common=True,
    )
    batch_pairs: Annotated[int, Field(ge=1, le=10**9)] = option(
        50_000, "maximum number of atom pairs in a batch; reduced if memory is short"
    )
    batch_molecules: Count | None = option(
        None,
        "batch size: maximum number of molecules in a batch; default: the square root of the number of training "
        "rows, from 16 to 128",
    )
    jitter: AtLeastZero = option(
        10.0, "randomness of batch composition: 0 sorts molecules by size, 10 is practically random"
    )

    lr: AboveZero = option(1e-3, "peak learning rate of AdamW")
    weight_decay: AtLeastZero = option(1e-2, "decay of weight matrices; norms, biases and embeddings have none")
    warmup: Share = option(0.05, "fraction of the steps over which the rate rises")
    rates: dict[str, AtLeastZero] | None = option(
        None,
        "factors of the learning rate by module of the model, such as all=0.1 head=1 layers.0=0; 0 freezes a "
        "module, other modules have the factor 1; default: the factors in the model of --from, else 1",
    )
    head_first: Share | None = option(
        None,
        "fraction of the steps, at the start, in which only modules with the factor 1 are trained; default: the value "
        "in the model of --from, else 0",
    )
    clip: AtLeastZero = option(1.0, "maximum norm of the gradient, which is clipped; 0: no clipping")
    ema: Share = option(
        0.99, "decay per step of the moving average of the weights, which is evaluated and saved; 0: no average"
    )
    keep_by: str | None = option(
        None,
        "validation score that selects the epoch to keep, also used by --patience: loss, or a metric of the task, such "
        "as mae (for several targets their mean); default: depends on the task, such as the RMSE in scaled units or "
        "1 - ROC-AUC",
    )
    patience: Annotated[int, Field(ge=0, le=LARGEST)] = option(
        0,
        "stop after this many epochs without a better validation score; in the second half of the epochs, the search "
        "for the best score starts again; 0 never stops early",
    )

    seed: Annotated[int, Field(ge=0, lt=2**32)] = option(
        0,
        "random seed of the initial weights, batches, dropout and, without --split-seed, the split",
        common=True,
    )
    folds: Annotated[int, Field(ge=1, le=1000)] = option(
        1,
        "number of networks, whose mean predicts; with 2 or more, each leaves out one fold of the rows, whose "
        "out-of-fold predictions take the place of validation rows",
        common=True,
    )

    blend: Literal["kernel", "no"] | None = option(
        None,
        "model that is blended with the network: kernel, ridge regression on substructures, descriptors and embeddings "
        "in closed form, weighted by the validation rows; or no. Default: kernel, where the task allows it",
    )

    kernel_parts: list[Literal["substructures", "descriptors", "foundation"]] | None = option(
        None,
        "inputs of the kernel: substructures, always; descriptors; and foundation, the embedding by the pretrained "
        "network that comes with gtx, which the network reads too. Their weights have the least leave-one-out error on "
        "training rows; default: all three, without foundation for rows of several molecules and hydrogens as atoms",
    )

    training_rows: bool | None = option(
        None,
        "store up to 20,000 training rows (SMILES and values) in the model file, so that predictions can name similar "
        "training molecules; default: store them. Leave them out before you share a model file, if they are secret",
    )

    precision: str = option(
        "32-true", "number format: 32-true, 64-true, or bf16-mixed or 16-mixed, which are faster on a GPU"
    )
    accelerator: Literal["auto", "cpu", "gpu"] = option(
        "auto", "where to train; auto takes a GPU if there is one", common=True
    )
    devices: Annotated[int | str, Field(union_mode="left_to_right")] = option(
        1, "number of GPUs, such as 2, or their indices, such as 0,2; several train together"
    )
    num_nodes: Count | None = option(
        None,
        "number of machines that train together, each with --devices; default: those started by torchrun, else 1",
    )

    capture: bool | None = option(
        None,
        "train in batches of constant shape, and capture the whole step as a CUDA graph; default: on a GPU, if the "
        "model allows it and a check at the start succeeds",
    )

    threads: Annotated[int, Field(ge=1, le=1024)] | None = option(
        None, "threads on a CPU; default: what PyTorch chooses, usually one per core", harmless=True
    )
    logger: Literal["csv", "tensorboard", "wandb", "mlflow"] | str | None = option(
        None,
        "also log to TensorBoard, Weights & Biases, MLflow, or a CSV file of Lightning",
        kind=Literal["csv", "tensorboard", "wandb", "mlflow"],
        harmless=True,
    )
    logger_arguments: Arguments = option({}, "arguments of the logger, such as save_dir=logs", harmless=True)
    progress: bool = option(True, "show a progress bar", harmless=True)

    def __post_init__(self) -> None:
        check_fields(self)

    def molecules_per_batch(self, rows: int) -> int:
        """Return the maximum number of molecules in a batch, for a number of training rows."""
        return self.batch_molecules or min(128, max(16, round(rows**0.5)))

    def resolve(self, epochs: int, machines: int = 1) -> TrainSettings:
        """Fill in the number of epochs and of machines, if they are None; a single machine stays None."""
        nodes = self.num_nodes or machines
        return replace(self, epochs=self.epochs or epochs, num_nodes=nodes if nodes > 1 else None)

    def decisive(self) -> dict[str, Any]:
        """Return the options that a result depends on, as plain values."""
        values = asdict(self)
        return {f.name: values[f.name] for f in fields(self) if not f.metadata["harmless"]}
