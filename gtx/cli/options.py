"""Options that several commands share, in groups as their help shows them."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from gtx.base.errors import InputError
from gtx.base.schema import Number, valid
from gtx.cli.parser import Option, options_of
from gtx.settings import Name, ReactionMode, option, option_fields, word
from gtx.settings.tasks import TASKS
from gtx.settings.training import TrainSettings

if TYPE_CHECKING:
    from gtx.data.public_datasets import PublicDataset
    from gtx.tasks import Task
    from gtx.tasks.combined import InferredTask
    from gtx.training_data import DataSettings

RowsFile = Annotated[
    str,
    valid("a file (--split-sizes sets shares)", lambda text: os.path.exists(text) or not re.fullmatch(r"[\d.]+", text)),
]


@dataclass(frozen=True)
class TableOptions:
    """Options of the table that a model is trained on."""

    data: str = word("TABLE", "a file, or the name of a public data set")
    target_columns: list[str] | None = option(
        None, "the columns to predict; default: those of a public data set", common=True
    )
    units: dict[str, str] = option(
        {},
        "the units of targets, such as dG_water=kcal/mol; scores, reports and pages show them, and the model file "
        "keeps them",
    )
    atom_target_columns: list[str] | None = option(
        None, "columns of lists, one number for each atom, to predict; with or without --target-columns"
    )
    bond_target_columns: list[str] | None = option(
        None, "columns of lists, one number for each bond, to predict; with or without --target-columns"
    )
    atom_class_columns: list[str] | None = option(
        None, "columns of lists, one class for each atom, to predict; with or without --target-columns"
    )
    bond_class_columns: list[str] | None = option(
        None, "columns of lists, one class for each bond, to predict; with or without --target-columns"
    )
    smiles_column: str | None = option(
        None, "the column with the SMILES; default: found by its name or its cells", common=True
    )
    smiles_columns: list[str] | None = option(
        None,
        "the columns of several molecules per row, such as solute solvent; with a reaction, those beside it",
    )
    reaction_column: str | None = option(None, "the column with atom-mapped reaction SMILES")
    reaction_columns: tuple[str, str] | None = option(None, "the columns with the reactants and the products")
    reaction_mode: ReactionMode | None = option(
        None,
        "codes of a reaction: reactants-difference, reactants-products or products-difference; with -balanced at "
        "the end, an atom that one side lacks has the same codes on both; default: reactants-difference",
    )
    agents: bool = option(False, "read the agents over the arrow too, as molecules that do not change")
    weight_column: str | None = option(
        None, "a column with the weight of each row in the loss, 0 or more; scores are not weighted"
    )
    feature_columns: list[str] = option(
        [], "columns of numbers, such as a temperature, that the model reads in addition to the molecule"
    )
    atom_feature_columns: list[str] = option(
        [], "columns of lists, one number for each atom, that the model reads in addition"
    )
    bond_feature_columns: list[str] = option(
        [], "columns of lists, one number for each bond, that the model reads in addition"
    )
    missing_features: Literal["error", "blank"] = option(
        "error",
        "error: a row with a missing number cannot be used; blank: the mean replaces a missing number, and the "
        "model is told that it is missing",
    )
    on_error: Literal["report", "fail"] = option(
        "report", "report: a bad row gets an error and the run goes on; fail: the run stops at the first bad row"
    )


@dataclass(frozen=True)
class RunOptions:
    """Options of the results."""

    out: Name = option(
        MISSING, "the output folder; its subfolder cache holds the SMILES of the table", metavar="FOLDER", common=True
    )
    overwrite: bool = option(False, "delete the run in the output folder first", common=True)


@dataclass(frozen=True)
class SplitOptions:
    """Options of the methods of `gtx.data.SPLIT_METHODS`, whose names are checked when the options have been read."""

    split: str | None = option(
        None,
        "random: rows drawn at random; scaffold: molecules of one ring system together, rare ones tested; cluster: "
        "similar molecules together; group: rows with one cell in --split-by together; time: the oldest by --split-by "
        "train, the latest are test; default: that of a public data set, else random",
        common=True,
    )
    split_by: str | None = option(None, "the column of groups or times for --split group or time")
    split_seed: int | None = option(None, "random seed of the split; default: --seed")


@dataclass(frozen=True)
class PartOptions:
    """Options of a split into training, validation and test rows."""

    split_sizes: tuple[Number, Number, Number] = option(
        (0.8, 0.1, 0.1),
        "the fractions of training, validation and test rows; their sum is 1",
        metavar="TRAIN VAL TEST",
    )
    split_column: str | None = option(
        None, "a column with train, val or test in each row, instead of --split", common=True
    )
    val: RowsFile | None = option(None, "a file with the validation rows", metavar="FILE")
    test: RowsFile | None = option(None, "a file with the test rows", metavar="FILE")
    group_duplicates: bool = option(True, "keep all rows of one molecule in one part of a random split")


@dataclass(frozen=True)
class MoleculeOptions:
    """Options by which molecules are read, see `gtx.molecules.Featuriser`."""

    max_atoms: int = option(
        1000,
        "maximum number of atoms of a molecule; a larger one is an error. To predict a molecule of 400 atoms takes "
        "half a second of a core and 150 MB, one of 1,000 atoms four seconds and 250 MB",
    )
    standardise: bool = option(False, "keep only the largest fragment, and neutralise it")
    hydrogens: bool = option(False, "make every hydrogen an atom of the graph")
    atom_order: Literal["smiles", "hydrogens-last", "map"] | None = option(
        None,
        "the order of lists of values of atoms and bonds: smiles, atoms as written; hydrogens-last, hydrogens "
        "after all other atoms (default, but asked for where it matters); map, atoms by their map numbers",
    )
    ignore_stereo: bool = option(False, "ignore the stereochemistry of stereocentres and double bonds")
    coordinates: bool = option(False, "use the 3D coordinates in the file; every molecule needs them")
    conformers: bool = option(
        False, "like --coordinates, and compute a conformer for each molecule without coordinates"
    )
    descriptors: bool = option(True, "the model also reads fast descriptors of the whole molecule")
    molecule_features: list[Literal["morgan", "maccs", "rdkit"]] = option(
        [],
        "further features of the whole molecule: Morgan counts, MACCS keys, RDKit's 213 two-dimensional descriptors",
    )
    workers: int | None = option(None, "number of processes that read molecules; default: one per core")


TABLE = options_of(TableOptions, "table")
RUN = options_of(RunOptions, "results")
DIVISION = options_of(PartOptions, "training, validation and test rows")
PARTS = [*options_of(SplitOptions, "training, validation and test rows"), *DIVISION]
MOLECULES = options_of(MoleculeOptions, "molecules")
SECTIONS = {"model": "model", "epochs": "training", "precision": "CPU and GPU", "logger": "logging and progress"}
"""The first field of `TrainSettings` in each group of options."""
TASK_OPTIONS = {name: {field.name for field in option_fields(entry.options)} for name, entry in TASKS.items()}
COLUMNS = {
    "atoms": "atom_target_columns",
    "bonds": "bond_target_columns",
    "atom-classes": "atom_class_columns",
    "bond-classes": "bond_class_columns",
}
"""The option that names the columns of a task of atoms or bonds."""


def training_options() -> list[Option]:
    """List an option for each field of `TrainSettings`, in groups."""
    options, group = [], ""
    for each in options_of(TrainSettings, ""):
        group = SECTIONS.get(each.name, group)
        options.append(replace(each, group=group))
    return options


def task_options(names: Sequence[str]) -> list[Option]:
    """List `--task` and the options of these tasks."""
    text = f"{', '.join(names)}; default: classification if all targets have two different values, else regression"
    options = {"task": Option("task", Literal[tuple(names)], None, text, "task", "--task", common=True)}
    for each in itertools.chain(*(options_of(TASKS[name].options, "task") for name in names)):
        tasks = [name for name in names if each.name in TASK_OPTIONS[name]]
        options.setdefault(each.name, replace(each, text=f"for {', '.join(tasks)}: {each.text}", tasks=tasks))
    return list(options.values())


# --- Settings of the options.


def molecule_columns(values: Mapping[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    """Return the column of molecules or reactions, if the options name it, and the columns of several components.

    Raises:
        InputError: it is named twice.
    """
    names = [name for name in ("smiles_column", "reaction_column", "reaction_columns") if values[name]]
    if len(names) > 1:
        raise InputError(f"{' and '.join('--' + name.replace('_', '-') for name in names)}: give one of them")
    several = tuple(values["smiles_columns"] or ())
    reaction = values["reaction_column"] or ">>".join(values["reaction_columns"] or ()) or None
    return (None, (reaction, *several)) if reaction and several else (values["smiles_column"] or reaction, several)


def settings_from(values: Mapping[str, Any]) -> tuple[DataSettings, TrainSettings]:
    """Make the settings of the data and of training from the options of a command."""
    from gtx.data import FeatureColumns
    from gtx.molecules import Featuriser
    from gtx.molecules.reactions import MODES
    from gtx.training_data import DataSettings

    settings = TrainSettings(**{field.name: values[field.name] for field in fields(TrainSettings)})
    known = resolve(values["data"])
    column, several = molecule_columns(values)
    targets = tuple(values["target_columns"] or (known and known.targets) or ())
    task = task_from(values, targets)
    units = {name: unit for name, unit in (known.units if known else {}).items() if name in targets}
    of_atoms, of_bonds = values["atom_feature_columns"], values["bond_feature_columns"]
    features = FeatureColumns(values["feature_columns"], values["missing_features"] == "blank", of_atoms, of_bonds)
    has_lists = of_atoms or of_bonds or (task is not None and (task.level != "molecule" or hasattr(task, "tasks")))
    if values["atom_order"] and not (values.get("start") or has_lists):
        raise InputError("--atom-order is for lists of values of atoms or bonds, and this model has none: leave it out")
    same = ("split_by", "on_error", "workers", "weight_column", *(each.name for each in DIVISION))
    options = {name: values[name] for name in same if name in values}
    if known and "split_column" in values and not {each.name for each in PARTS} & values["chosen"]:
        options["split_column"] = known.default_split
    reading = {each.name: values[each.name] for each in MOLECULES if each.name != "workers"}
    reaction = values["reaction_mode"]
    if values["reaction_column"] or values["reaction_columns"]:
        reaction = reaction or MODES[0]
    elif reaction:
        raise InputError("--reaction-mode is for reactions: give --reaction-column, or leave it out")
    data = DataSettings(
        str(known.path) if known else values["data"],
        getattr(task, "targets", targets),
        smiles_column=column or (known.smiles_column if known and not several else None),
        task=task,
        split=values["split"] or "random",
        seed=settings.seed if values["split_seed"] is None else values["split_seed"],
        featuriser=Featuriser(**reading, agents=values["agents"], components=several, reaction=reaction),
        features=features,
        units=units | values["units"],
        **options,
    )
    return data, settings


def task_from(values: Mapping[str, Any], targets: Sequence[str]) -> Task | InferredTask | None:
    """Make the task of the options; `InferredTask` if only options of tasks are set, None if nothing is."""
    from gtx.tasks import InferredTask, TaskList, make_task

    options = {name: values[name] for name in sorted(set().union(*TASK_OPTIONS.values()) & values["chosen"])}
    name = values["task"]
    columns = {part: values[option] for part, option in COLUMNS.items() if values[option]}
    if not columns:
        inferred = InferredTask(targets, "molecule", **options) if options else None
        return make_task(name, targets, options) if name else inferred
    if targets:
        columns = {"regression": targets, **columns}
    if name and list(columns) != [name]:
        message = f"--task {name}: targets of atoms and bonds go with --task regression's alone; leave it out"
        if name in ("classification", "multiclass"):
            message += "; classes of atoms are --atom-class-columns, of bonds --bond-class-columns"
        raise InputError(message)
    if unknown := options.keys() - set().union(*(TASK_OPTIONS[part] for part in columns)):
        raise InputError(f"{min(unknown)}: {' and '.join(columns)} have no such option; leave it out")
    own = {part: {option: options[option] for option in options.keys() & TASK_OPTIONS[part]} for part in columns}
    made = [make_task(part, names, own[part]) for part, names in columns.items()]
    return made[0] if len(made) == 1 else TaskList(tasks=tuple(made))


def resolve(name: str) -> PublicDataset | None:
    """Load the public data set of that name; return None for anything that `gtx.data.open_table` reads."""
    if os.path.isfile(name):
        return None
    from gtx.data.public_datasets import PUBLIC_DATASETS, load_public_dataset
    from gtx.data.tables import check_source

    if name in PUBLIC_DATASETS:  # a folder of that name is where its run is
        return load_public_dataset(name)
    if not os.path.exists(name):
        check_source(name, PUBLIC_DATASETS)
    return None
