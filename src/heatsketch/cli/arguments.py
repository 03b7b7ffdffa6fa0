"""What the command line takes: verbs, their options, and the options that they share."""

import argparse
import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from heatsketch import __version__
from heatsketch._words import did_you_mean

VERBS = {  # what each does, and an example
    "embed": ("embed a file of points", "table.csv -o map.csv --plot map.png"),
    "transform": ("place points by a model that embed has kept", "my.model new.csv -o new-map.csv"),
    "report": (
        "embed points, and show them in a page of HTML",
        "table.csv -o page.html --label kind",
    ),
    "score": ("measure how an embedding distorts diffusion distances", "table.csv map.csv"),
    "compare": ("compare methods on one file, or the data of two", "before.csv after.csv"),
    "distances": ("print diffusion distances, the nearest first", "table.csv --from sample_7"),
    "scales": (
        "show which times, bandwidth and dimension suit points",
        "table.csv --plot scales.png",
    ),
    "methods": ("list the methods, or the parameters of one", "heat-embedding"),
}

NAMING = ("--from", "--pseudotime", "--label", "--id", "--features", "--exclude")  # by any text

DEFAULT_METHOD = "heat-embedding"

_PARAMETERS = {  # that nearly everyone uses; all others are given as -p NAME=VALUE
    "n_components": ("K", "number of coordinates"),
    "time": ("T[,T...]", "diffusion time: a number, several, or a rule (auto)"),
    "n_neighbors": ("M", "number of nearest neighbours of each point"),
    "epsilon": ("E", "bandwidth of the affinity: a number, or a rule (self-tuning, ksum, ...)"),
    "affinity": ("A", "pairs of points with an affinity: knn, variable, dense, radius; or INPUT "
                 "holds the affinities (precomputed)"),
    "metric": ("D", "distance of points: euclidean, cosine, correlation, ..."),
    "normalization": ("N", "of the affinities: markov, symmetric, bistochastic"),
    "alpha": ("A", "power of the density of the points that affinities are divided by"),
    "filter": ("F", "function of an eigenvalue λ at time t: power, heat, accumulated"),
    "random_state": ("S", "seed of the random numbers (default 0)"),
}  # fmt: skip


class _Help(argparse.HelpFormatter):
    """Help whose first line is short: it names what must be given, the list below the options."""

    def add_usage(
        self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None
    ) -> None:
        """Add the usage, with [OPTION ...] for all that may be left out."""
        needed = [group for group in groups if group.required]
        of_groups = [action for group in needed for action in group._group_actions]
        shown = [a for a in actions if a.required or a in of_groups or not a.option_strings]
        if len(shown) < len(actions):
            shown.insert(0, argparse.Action([], "options", metavar="[OPTION ...]"))
        super().add_usage(usage, shown, needed, prefix)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and suggest the word that was meant."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(formatter_class=_Help, allow_abbrev=False, **kwargs)

    def error(self, message: str) -> NoReturn:
        """Print the message, without the usage, and end with code 2."""
        wrong = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if wrong:
            message += did_you_mean(wrong[1], re.findall(r"[^\s,']+", wrong[2]), end="")
        self.exit(2, f"heatsketch: error: {message} (see {self.prog} --help)\n")

    def refuse(self, arguments: Sequence[str]) -> NoReturn:
        """Raise for arguments that the verb does not have."""
        options = [name for action in self._actions for name in action.option_strings]
        name = arguments[0].partition("=")[0]
        hint = did_you_mean(name, options, end="")
        if name.startswith("--") and "-p" in options:
            hint += f"; parameters of a method are given as -p {name[2:].replace('-', '_')}=VALUE"
        self.error(f"unrecognized arguments: {' '.join(arguments)}{hint}")


class _ShowVersions(argparse.Action):
    """Print the versions that results depend on, and end."""

    def __init__(self, *, version: str, **rest: Any) -> None:
        super().__init__(nargs=0, default=argparse.SUPPRESS, **rest)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from heatsketch._environment import show_versions

        show_versions()
        parser.exit()


class _Parameter(argparse.Action):
    """Put a parameter of an estimator into the mapping `parameters`."""

    def __call__(self, parser: Any, args: Any, given: Any, flag: str | None = None) -> None:
        name, text = given if self.dest == "parameter" else (self.dest, given)
        args.parameters = {**args.parameters, name: value(text)}


def value(text: str) -> Any:
    """Read a number, True, False, None, several with commas between, or a word."""
    if "," in text:
        return [value(part) for part in text.split(",")]
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _assignment(text: str) -> tuple[str, str]:
    name, separator, given = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name.strip().replace("-", "_"), given


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer >= 1")
    return int(text)


def _names(text: str) -> list[str]:
    """Read names with commas between; quotes protect commas."""
    return next(csv.reader([text]), [])


def parser_of(argv: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = _Parser(
        prog="heatsketch",
        description="Compute coordinates whose Euclidean distances are diffusion distances.",
        epilog="Points come from a file (.npy, .npz, .csv, .tsv, .txt, also with .gz, .parquet, "
        ".xlsx, .h5ad, .zarr), from standard input (-), or from a built-in set by its name "
        "(digits, swiss_roll, ...).",
    )
    version: Any = _ShowVersions if "--verbose" in argv else "version"
    parser.add_argument("--version", action=version, version=f"heatsketch {__version__}")
    verbose = "with --version: the versions of all that results depend on, for a report of a fault"
    parser.add_argument("--verbose", action="store_true", help=verbose)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="verb")
    shared = {
        "reading": _reading(),
        "features": _features(),
        "parameters": _parameters(),
        "common": _common(),
    }
    for name, (said, example) in VERBS.items():
        takes = {"transform": ("reading",), "methods": ()}.get(
            name, ("reading", "features", "parameters")
        )
        verb = commands.add_parser(
            name,
            help=said,
            description=f"{said[0].upper()}{said[1:]}.",
            epilog=f"Example: heatsketch {name} {example}",
            parents=[shared[one] for one in (*takes, "common")],
        )
        globals()[f"_add_{name}"](verb.add_argument)
        verb.set_defaults(usage_error=verb.error, refuse=verb.refuse)
        if "parameters" in takes:
            verb.set_defaults(parameters={})
    return parser


def _common() -> _Parser:
    shared = _Parser(add_help=False)
    add = shared.add_argument
    add("-q", "--quiet", action="store_true", help="print no progress and no warnings")
    add("--debug", action="store_true", help="print the traceback of an error")
    return shared


def _reading() -> _Parser:
    """Return the options of reading points, which all verbs share that read some."""
    shared = _Parser(add_help=False)
    add = shared.add_argument_group("reading INPUT").add_argument
    add("--label", action="append", metavar="NAME", help="column of labels (may be repeated)")
    add("--id", action="append", metavar="NAME", help="column of ids (may be repeated)")
    add("--key", help="array or sheet of INPUT to read")
    gaps = "missing numbers: refuse them, drop their rows, or fill in the median of the column; "
    gaps += "drop and median count cells that are not numbers as missing (default error)"
    add("--missing", choices=("error", "drop", "median"), help=gaps)
    add("--sep", metavar="C", help="character between cells of text, tab or space (default: seen)")
    add(
        "--decimal",
        choices=(".", ","),
        metavar="C",
        help="decimal mark of text, . or , (default .)",
    )
    header = "whether the first row of text holds the names of the columns (default: seen)"
    add("--header", action=argparse.BooleanOptionalAction, help=header)
    return shared


def _features() -> _Parser:
    """Return the options that say what points are; a model knows it for other points."""
    shared = _Parser(add_help=False)
    add = shared.add_argument_group("points in INPUT").add_argument
    names: dict[str, Any] = {"type": _names, "action": "extend", "metavar": "NAME[,NAME...]"}
    add("--features", **names, help="columns that are features (default: all numeric ones)")
    add("--exclude", **names, help="columns that are not features, but passed through")
    scale = "give every column mean 0 and variance 1"
    add("--standardize", action="store_true", default=None, help=scale)
    graph = "INPUT holds a graph: an edge list (two columns of names, perhaps one of weights), a "
    graph += "matrix (.mtx, .npz), or in .h5ad the entry NAME of obsp (default connectivities); "
    graph += "the default of --filter is then heat"
    add("--graph", nargs="?", const=True, metavar="NAME", help=graph)
    return shared


def _parameters() -> _Parser:
    """Return the parameters of estimators; only those that are given reach an estimator."""
    shared = _Parser(add_help=False)
    about = "'heatsketch methods METHOD' lists all parameters of a method, with their defaults"
    group = shared.add_argument_group("parameters", about)
    rest: dict[str, Any] = {"action": _Parameter, "default": argparse.SUPPRESS}
    for name, (metavar, said) in _PARAMETERS.items():
        group.add_argument(f"--{name.replace('_', '-')}", metavar=metavar, help=said, **rest)
    rest |= {"type": _assignment, "metavar": "NAME=VALUE", "dest": "parameter"}
    group.add_argument("-p", help="any parameter (may be repeated)", **rest)
    return shared


_INPUT: dict[str, Any] = {
    "metavar": "INPUT",
    "help": "file of points, or built-in set; - for text on standard input",
}
_METHOD: dict[str, Any] = {
    "metavar": "METHOD",
    "default": DEFAULT_METHOD,
    "help": f"how to embed the points (default {DEFAULT_METHOD}; 'heatsketch methods' lists all)",
}
_FORCE: dict[str, Any] = {"action": "store_true", "help": "replace files that exist"}
_JSON: dict[str, Any] = {"action": "store_true", "help": "print the result as JSON"}
_WHOLE: dict[str, Any] = {
    "action": "store_true",
    "help": "show far points at their places in pictures, too, however small the others are",
}


def _file(said: str, **more: Any) -> dict[str, Any]:
    return {"type": Path, "metavar": "FILE", "help": said, **more}


def _picture(said: str) -> dict[str, Any]:
    return _file(f"draw {said}: .png, .pdf or .svg")


_METADATA = _file("write how the output was made, for score; .npz, .parquet and .h5ad hold it")


def _add_embed(add: Any) -> None:
    add("input", **_INPUT)
    written = "file to write the embedding to; - for .csv on standard output"
    add("-o", "--output", **_file(written))
    add("-m", "--method", **_METHOD)
    add("--plot", **_picture("the embedding"))
    add("--whole", **_WHOLE)
    kept = "keep the fitted model in a file, for heatsketch transform and hs.load_model"
    add("--save-model", **_file(kept))
    add("--in-place", action="store_true", help="add the embedding to INPUT, which is .h5ad")
    add("--output-key", metavar="NAME", help="name in an .h5ad output (default X_heat, X_pca, ...)")
    certain = "add a column neighbor_confidence to the output, the share of neighbours of a point "
    certain += "that are certain, and colour --plot by it (heat-sketch)"
    add("--intervals", action="store_true", help=certain)
    late = "add pseudotime columns with error bars: 0 at this root (an id, or number of a row), 1 "
    late += "at the farthest point; and colour --plot by it"
    add("--pseudotime", metavar="ID", help=late)
    some = "fit a uniform sample of so many points and map all others by it, block by block: for "
    some += ".npy, .parquet, .csv, .h5ad, .zarr and folders of parts (default: as many as fit in "
    some += "half of the memory)"
    add("--fit-points", type=_positive, metavar="N", help=some)
    resume = "go on with a run by blocks that was killed, from the folder OUTPUT.partial"
    add("--resume", action="store_true", help=resume)
    workers = "map the blocks by workers of Dask: local:N starts N processes on this machine; or "
    workers += "the address of a scheduler (tcp://HOST:PORT) whose workers share the folders of "
    workers += "INPUT and OUTPUT"
    add("--cluster", metavar="CLUSTER", help=workers)
    add("--metadata", **_METADATA)
    add("--force", **_FORCE)


def _add_transform(add: Any) -> None:
    add("model", **_file("file of a model, from embed --save-model") | {"metavar": "MODEL"})
    add("input", nargs="?", **_INPUT)
    add(
        "-o", "--output", **_file("file to write the coordinates to; - for .csv on standard output")
    )
    add("--output-key", metavar="NAME", help="name in an .h5ad output (default X_heat, X_pca, ...)")
    add("--info", action="store_true", help="print what MODEL is, without INPUT")
    add("--metadata", **_METADATA)
    add("--force", **_FORCE)


def _add_report(add: Any) -> None:
    add("input", **_INPUT)
    add("-o", "--output", required=True, **_file(".html, which any browser shows, offline"))
    add("-m", "--method", **_METHOD)
    slider = "diffusion times of the slider (default: some about that of the embedding)"
    add("--times", type=value, metavar="T[,T...]", help=slider)
    add("--force", **_FORCE)


def _add_score(add: Any) -> None:
    add("input", **_INPUT)
    add("embedding", metavar="EMBEDDING", help="file of coordinates, with the rows of INPUT")
    made = (
        "how EMBEDDING was made, if it has no place for it (text, .npy): FILE of embed --metadata"
    )
    add("--metadata", **_file(made))
    add("--embedding-key", metavar="KEY", help="array of EMBEDDING to read (.npz, .h5ad)")
    pairs = "number of random pairs beyond 2,048 points, up to which all pairs count"
    add("--pairs", type=_positive, metavar="N", help=pairs)
    add("--json", **_JSON)


def _add_compare(add: Any) -> None:
    add("input", **_INPUT)
    add("other", nargs="?", metavar="OTHER", help="file that INPUT is compared with, read alike")
    written = "folder for table, picture and embeddings of the methods; with OTHER, a file for the "
    written += "discrepancy of each point: .csv, .tsv or .txt"
    add("-o", "--output", type=Path, metavar="PATH", help=written)
    add("--methods", type=_names, metavar="A[,B...]", help="some methods, or all")
    seeds = "runs of the methods with different seeds, for the stability (default 2)"
    add("--seeds", type=_positive, default=2, metavar="S", help=seeds)
    same = "OTHER holds the same points in the same order; without it points are matched by ids, "
    same += "and files without common ids are compared as samples of different points"
    add("--same-rows", action="store_true", help=same)
    add("--level", type=float, default=0.95, metavar="P", help="of the intervals (default 0.95)")
    add("--plot", **_picture("the points of two files, coloured by their discrepancy"))
    add("--whole", **_WHOLE)
    add("--force", **_FORCE)


def _add_distances(add: Any) -> None:
    add("input", **_INPUT)
    origin = "id, or number of the row, of the point whose distances to all points are wanted, the "
    origin += "nearest first"
    add("--from", dest="origin", metavar="ID", help=origin)
    pairs = "text file with a pair in each line: two ids, or numbers of rows from 0 without ids"
    add("--pairs", dest="pairs_file", **_file(pairs))
    model = "distances of the diffusion of a model that was fitted to INPUT, at its time"
    add("--model", **_file(model))
    add("-o", "--output", **_file("file for the table: .csv, .tsv or .txt (default: print it)"))
    level = "probability with which an error bar holds the distance (default 0.95)"
    add("--level", type=float, default=0.95, metavar="P", help=level)
    together = "let all error bars hold at once with this probability, not each by itself"
    add("--simultaneous", action="store_true", help=together)
    add("--force", **_FORCE)


def _add_scales(add: Any) -> None:
    add("input", **_INPUT)
    add("--plot", **_picture("what is kept, how many directions are left, and the Ksum slopes"))
    add("--json", **_JSON)
    add("--force", **_FORCE)


def _add_methods(add: Any) -> None:
    add("method", nargs="?", metavar="METHOD", help="the method whose parameters are listed")
