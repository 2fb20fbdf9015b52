"""Options that several commands share, in groups as their help shows them."""

from __future__ import annotations

from argparse import BooleanOptionalAction
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from gtx.base.errors import InputError
from gtx.cli.parser import Group, Parser, Texts, choices_of, file_of_rows, option_of
from gtx.settings.options import chosen
from gtx.settings.tasks import TASKS
from gtx.settings.training import TrainSettings

if TYPE_CHECKING:
    from gtx.data import FeatureColumns
    from gtx.data.public_datasets import PublicDataset
    from gtx.molecules import Featuriser
    from gtx.tasks import Task
    from gtx.tasks.inferred import InferredTask
    from gtx.training_data import DataSettings

COLUMNS = {
    "atoms": "atom_target_columns",
    "bonds": "bond_target_columns",
    "atom-classes": "atom_class_columns",
    "bond-classes": "bond_class_columns",
}
"""The option that names the columns of a task of atoms or bonds."""
SECTIONS = {"model": "model", "epochs": "training", "precision": "CPU and GPU", "logger": "logging and progress"}
"""The first field of `TrainSettings` in each group of options."""


SPLITS = (
    "random: rows drawn at random; scaffold: molecules of one ring system together, rare ones tested; cluster: similar "
    "molecules together; group: rows with one cell in --split-by together"
)
"""What the methods of `gtx.data.SPLIT_METHODS` do; the commands check a name when they have read the options."""
TIME_SPLIT = "time: the oldest by --split-by train, the latest are test"


def add_table(parser: Parser) -> Group:
    """Add the options of the table."""
    group = parser.add_argument_group("table")
    group.add_argument("data", metavar="TABLE", help="a file, or the name of a public data set")
    group.add_argument(
        "--target-columns",
        nargs="+",
        metavar="NAME",
        help="the columns to predict; default: those of a public data set",
    )
    group.add_argument(
        "--units",
        action=Texts,
        default={},
        help="the units of targets, such as dG_water=kcal/mol; scores, reports and pages show them, and the model file "
        "keeps them",
    )
    for option, item in (("target", "number"), ("class", "class")):
        for part in ("atom", "bond"):
            group.add_argument(
                f"--{part}-{option}-columns",
                nargs="+",
                metavar="NAME",
                help=f"columns of lists, one {item} for each {part}, to predict; with or without --target-columns",
            )
    add_molecule_columns(group)
    group.add_argument(
        "--reaction-mode",
        metavar="NAME",
        help="codes of a reaction: reactants-difference, reactants-products or products-difference; with -balanced at "
        "the end, an atom that one side lacks has the same codes on both; default: reactants-difference",
    )
    group.add_argument(
        "--agents", action="store_true", help="read the agents over the arrow too, as molecules that do not change"
    )
    group.add_argument(
        "--relation-column",
        metavar="NAME",
        help="a column with the relation of each value of the one target, such as ChEMBL's Standard Relation: = or ~ "
        "for a value, > or < for a bound to learn from",
    )
    group.add_argument(
        "--weight-column",
        metavar="NAME",
        help="a column with the weight of each row in the loss, 0 or more; scores are not weighted",
    )
    group.add_argument(
        "--feature-columns",
        nargs="+",
        metavar="NAME",
        help="columns of numbers, such as a temperature, that the model reads in addition to the molecule",
    )
    for part in ("atom", "bond"):
        group.add_argument(
            f"--{part}-feature-columns",
            nargs="+",
            metavar="NAME",
            help=f"columns of lists, one number for each {part}, that the model reads in addition",
        )
    group.add_argument(
        "--missing-features",
        choices=["error", "blank"],
        default="error",
        help="error: a row with a missing number cannot be used; blank: the mean replaces a missing number, and the "
        "model is told that it is missing",
    )
    add_on_error(group)
    return group


def add_molecule_columns(group: Parser | Group, usual: str = "", several: str = "") -> None:
    """Add the options of the columns of molecules; `usual` and `several` say which are the defaults of each."""
    default = f"default: {usual}found by its name or its cells"
    group.add_argument("--smiles-column", metavar="NAME", help=f"the column with the SMILES; {default}")
    group.add_argument(
        "--smiles-columns",
        nargs="+",
        metavar="NAME",
        help=f"the columns of several molecules per row, such as solute solvent{several}; with a reaction, those "
        "beside it",
    )
    group.add_argument("--reaction-column", metavar="NAME", help="the column with atom-mapped reaction SMILES")
    group.add_argument(
        "--reaction-columns", nargs=2, metavar="NAME", help="the columns with the reactants and the products"
    )


def molecule_columns(values: dict[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    """Return the column of molecules or reactions, if the options name it, and the columns of several components.

    Raises:
        InputError: it is named twice.
    """
    named = [name for name in ("smiles_column", "reaction_column", "reaction_columns") if values[name]]
    if len(named) > 1:
        raise InputError(f"{' and '.join('--' + name.replace('_', '-') for name in named)}: give one of them")
    several = tuple(values["smiles_columns"] or ())
    column = values["smiles_column"] or reaction_column(values)
    return (None, (column, *several)) if reaction_column(values) and column and several else (column, several)


def reaction_column(values: dict[str, Any]) -> str | None:
    """Return the column of reactions; of both sides in two columns, their names with an arrow between them."""
    return values["reaction_column"] or ">>".join(values["reaction_columns"] or ()) or None


def add_on_error(group: Parser | Group) -> None:
    """Add the option for rows that cannot be used."""
    group.add_argument(
        "--on-error",
        choices=["report", "fail"],
        default="report",
        help="report: a bad row gets an error and the run goes on; fail: the run stops at the first bad row",
    )


def add_workers(group: Parser | Group, work: str = "read molecules", few: str = "") -> None:
    """Add the option for the number of processes; `work` is what they do, `few` when there are none."""
    text = f"number of processes that {work}; default: one per core{few}"
    group.add_argument("--workers", type=int, metavar="N", help=text)


def add_task(parser: Parser, words: Sequence[str]) -> Group:
    """Add `--task` and every option of these tasks."""
    group = parser.add_argument_group("task")
    group.add_argument(
        "--task",
        **choices_of(words),
        help=f"{', '.join(words)}; default: classification if all targets have two different values, else regression",
    )
    for kind in dict.fromkeys(TASKS[word].options for word in words):
        types = get_type_hints(kind)
        for field in chosen(kind):
            having = [word for word in words if field.name in get_type_hints(TASKS[word].options)]
            if TASKS[having[0]].options is not kind:
                continue  # it is there already
            about = field.metadata["help"].replace("%", "%%").removesuffix(".")
            text = (
                f"for {' and '.join(filter(None, (', '.join(having[:-1]), having[-1])))}: {about[0].lower()}{about[1:]}"
            )
            text += "" if "default" in text or field.default is False else f" (default: {field.default})"
            option = group.add_argument(
                f"--{field.name.replace('_', '-')}",
                **option_of(types[field.name], field.default),
                default=None,
                help=text,
            )
            parser.tasks[option.dest] = having
    return group


def task_from(values: dict[str, Any], targets: Sequence[str]) -> Task | InferredTask | None:
    """Make the task of the options; `InferredTask` if only options of tasks are set, None if nothing is."""
    from gtx import tasks
    from gtx.tasks.inferred import InferredTask

    options = {field.name: values.get(field.name) for entry in TASKS.values() for field in chosen(entry.options)}
    options = {name: value for name, value in options.items() if value is not None}
    of_parts = {word: values.get(columns) for word, columns in COLUMNS.items()}
    if any(of_parts.values()):
        return _together(values["task"], {"regression": targets} | of_parts, options)
    if values["task"] is None:
        return InferredTask(targets, "molecule", **options) if options else None
    return tasks.make_task(values["task"], targets, options)


def _together(word: str | None, columns: dict[str, Sequence[str] | None], options: dict[str, Any]) -> Task:
    """Make a task from columns of molecules, atoms and bonds, by the names of their tasks."""
    from gtx import tasks

    targets = {name: names for name, names in columns.items() if names}
    if word not in (None, *([*targets] if len(targets) == 1 else [])):
        alone = "targets of atoms and bonds go with --task regression's alone; leave it out"
        classes = "; classes of atoms are --atom-class-columns, of bonds --bond-class-columns"
        raise InputError(f"--task {word}: {alone}{classes * (word in ('classification', 'multiclass'))}")
    known = {name: {field.name for field in chosen(TASKS[name].options)} for name in targets}
    if unknown := options.keys() - set().union(*known.values()):
        raise InputError(f"{min(unknown)}: {' and '.join(targets)} have no such option; leave it out")
    made = [
        tasks.make_task(name, names, {k: v for k, v in options.items() if k in known[name]})
        for name, names in targets.items()
    ]
    return made[0] if len(made) == 1 else tasks.TaskList(tasks=tuple(made))


def add_run(parser: Parser) -> Group:
    """Add the options of the results."""
    group = parser.add_argument_group("results")
    group.add_argument(
        "--out",
        required=True,
        metavar="FOLDER",
        help="the output folder; its subfolder cache holds the SMILES of the table",
    )
    group.add_argument("--overwrite", action="store_true", help="delete the run in the output folder first")
    return group


def add_split(parser: Parser, title: str, folds: bool = False) -> Group:
    """Add the options of the split; with `folds` only methods that have folds."""
    group = parser.add_argument_group(title)
    methods = "" if folds else f"; {TIME_SPLIT}; default: that of a public data set, else random"
    group.add_argument("--split", metavar="NAME", help=SPLITS + methods)
    group.add_argument("--split-by", metavar="NAME", help="the column of groups or times for --split group or time")
    group.add_argument("--split-seed", type=int, metavar="N", help="random seed of the split; default: --seed")
    return group


def add_parts(parser: Parser) -> Group:
    """Options of a split into training, validation and test rows."""
    split = add_split(parser, "training, validation and test rows")
    split.add_argument(
        "--split-sizes",
        nargs=3,
        type=float,
        default=[0.8, 0.1, 0.1],
        metavar=("TRAIN", "VAL", "TEST"),
        help="the fractions of training, validation and test rows; their sum is 1",
    )
    split.add_argument(
        "--split-column", metavar="NAME", help="a column with train, val or test in each row, instead of --split"
    )
    for part, rows in (("--val", "validation"), ("--test", "test")):
        split.add_argument(part, type=file_of_rows, metavar="FILE", help=f"a file with the {rows} rows")
    return split


def add_reading(parser: Parser) -> Group:
    """Add the options by which molecules are read."""
    group = parser.add_argument_group("molecules")
    group.add_argument(
        "--max-atoms",
        type=int,
        default=1000,
        metavar="N",
        help="maximum number of atoms of a molecule; a larger one is an "
        "error. To predict a molecule of 400 atoms takes "
        "half a second of a core and 150 MB, one of 1,000 atoms four seconds and 250 MB",
    )
    group.add_argument("--standardise", action="store_true", help="keep only the largest fragment, and neutralise it")
    group.add_argument("--hydrogens", action="store_true", help="make every hydrogen an atom of the graph")
    group.add_argument(
        "--atom-order",
        choices=["smiles", "hydrogens-last", "map"],
        help="the order of lists of values of atoms and bonds: smiles, atoms as written; hydrogens-last, hydrogens "
        "after all other atoms (default, but asked for where it matters); map, atoms by their map numbers",
    )
    group.add_argument(
        "--ignore-stereo", action="store_true", help="ignore the stereochemistry of stereocentres and double bonds"
    )
    group.add_argument(
        "--coordinates", action="store_true", help="use the 3D coordinates in the file; every molecule needs them"
    )
    group.add_argument(
        "--conformers",
        action="store_true",
        help="like --coordinates, and compute a conformer for each molecule without coordinates",
    )
    group.add_argument(
        "--descriptors",
        action=BooleanOptionalAction,
        default=True,
        help="the model also reads fast descriptors of the whole molecule",
    )
    group.add_argument(
        "--molecule-features",
        nargs="+",
        choices=["morgan", "maccs", "rdkit"],
        default=[],
        help="further features of the whole molecule: Morgan counts, "
        "MACCS keys, RDKit's 213 two-dimensional descriptors",
    )
    add_workers(group)
    return group


def add_settings(parser: Parser) -> None:
    """Add an option for each field of `TrainSettings`."""
    types, defaults = get_type_hints(TrainSettings), TrainSettings()
    group: Parser | Group = parser
    for field in fields(TrainSettings):
        if field.name in SECTIONS:
            group = parser.add_argument_group(SECTIONS[field.name])
        text = field.metadata["help"].removesuffix(".").replace("%", "%%")
        option = {"default": getattr(defaults, field.name), "help": text[0].lower() + text[1:]}
        group.add_argument(
            f"--{field.name.replace('_', '-')}", **option_of(types[field.name], option["default"]), **option
        )


def settings_from(values: dict[str, Any], **more: Any) -> tuple[DataSettings, TrainSettings]:
    """Make the settings of the data and of training; `more` are data settings that only some commands have."""
    from gtx.training_data import DataSettings

    settings = TrainSettings(**{field.name: values[field.name] for field in fields(TrainSettings)})
    named = resolve(values["data"])
    if named and "split_column" in more and not any(_divided(values, more)):
        more["split_column"] = named.default_split
    column, several = molecule_columns(values)
    targets = tuple(values["target_columns"] or (named and named.targets) or ())
    task, known = task_from(values, targets), named.units if named else {}
    features = features_from(values)
    if values["atom_order"] and not (values.get("from") or _has_lists(task, features)):
        raise InputError("--atom-order is for lists of values of atoms or bonds, and this model has none: leave it out")
    data = DataSettings(
        str(named.path) if named else values["data"],
        getattr(task, "targets", targets),
        smiles_column=column or (named.smiles_column if named and not several else None),
        task=task,
        split=values["split"] or "random",
        split_by=values["split_by"],
        seed=settings.seed if values["split_seed"] is None else values["split_seed"],
        on_error=values["on_error"],
        featuriser=featuriser_from(values),
        workers=values["workers"],
        relation_column=values["relation_column"],
        weight_column=values["weight_column"],
        features=features,
        units={name: unit for name, unit in known.items() if name in targets} | values["units"],
        **more,
    )
    return data, settings


def _has_lists(task: Task | InferredTask | None, features: FeatureColumns | None) -> bool:
    """Return whether a model reads or predicts lists of values of atoms or bonds."""
    of_lists = task is not None and (task.level != "molecule" or hasattr(task, "tasks"))
    return of_lists or (features is not None and bool(features.widths))


def _divided(values: dict[str, Any], more: dict[str, Any]) -> Iterator[bool]:
    """Yield for each option of the split whether the user set it."""
    from gtx.training_data import DataSettings

    yield from (values[name] is not None for name in ("split", "split_by", "split_seed"))
    yield from (more.get(name) is not None for name in ("split_column", "val", "test"))
    yield more["split_sizes"] != DataSettings.split_sizes


def featuriser_from(values: dict[str, Any]) -> Featuriser:
    """Make the featuriser of the options."""
    from gtx.molecules import Featuriser
    from gtx.molecules.reactions import MODES

    reaction = (values["reaction_mode"] or MODES[0]) if reaction_column(values) else None
    settings = {name: values[name] for name in _FEATURISER}
    return Featuriser(**settings, components=molecule_columns(values)[1], reaction=reaction)


def features_from(values: dict[str, Any]) -> FeatureColumns | None:
    """Return the feature columns; None if there are none."""
    from gtx.data import FeatureColumns

    names, atoms, bonds = (values[f"{part}feature_columns"] or () for part in ("", "atom_", "bond_"))
    blanks = values["missing_features"] == "blank"
    return FeatureColumns(names, blanks, atoms, bonds) if names or atoms or bonds else None


_FEATURISER = (
    *("max_atoms", "standardise", "coordinates", "hydrogens", "descriptors", "conformers", "molecule_features"),
    *("ignore_stereo", "atom_order", "agents"),
)


def resolve(name: str) -> PublicDataset | None:
    """Load the public data set of that name; return None for anything that `gtx.data.open_table` reads."""
    if Path(name).is_file():
        return None
    from gtx.data.public_datasets import PUBLIC_DATASETS, load_public_dataset
    from gtx.data.tables import check_source

    if name in PUBLIC_DATASETS:  # a folder of that name is where its run is
        return load_public_dataset(name)
    if not Path(name).exists():
        check_source(name, PUBLIC_DATASETS)
    return None
