"""What the command line takes: verbs, their options, and the options that they share."""

import argparse
import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from heatsketch import __version__
from heatsketch._words import did_you_mean

NAMING = ("--from", "--pseudotime", "--label", "--id", "--features", "--exclude")  # by any text

DEFAULT_METHOD = "heat-embedding"

_PARAMETERS = {  # that nearly everyone uses: --NAME VALUE is short for -p NAME=VALUE
    "n_components": "number of coordinates",
    "time": "diffusion time: a number, several (2,8), or a rule (auto)",
    "n_neighbors": "number of nearest neighbours of each point",
    "epsilon": "bandwidth of the affinity: a number, or a rule (self-tuning, ksum, ...)",
    "affinity": "knn, variable, dense, radius; precomputed if INPUT holds the affinities",
    "metric": "distance of points: euclidean, cosine, correlation, ...",
    "normalization": "affinities are made markov, symmetric or bistochastic",
    "alpha": "power of the density of the points that affinities are divided by",
    "filter": "function of an eigenvalue at time t: power, heat, accumulated",
    "random_state": "seed of the random numbers (default 0)",
}
_READ = {
    "key": "array or sheet to read",
    "sep": "character between cells of text, tab or space (default: seen)",
    "decimal": "decimal mark of text, . or , (default .)",
    "header": "yes or no, whether the first row of text holds names (default: seen)",
}
_BOOLEANS = {"yes": True, "true": True, "no": False, "false": False}


class _Help(argparse.HelpFormatter):
    """Help whose first line is short: it names what must be given, the list below the options."""

    def add_usage(
        self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None
    ) -> None:
        """Add the usage, with [OPTION ...] for all that may be left out."""
        shown = [a for a in actions if a.required or not a.option_strings]
        if len(shown) < len(actions):
            shown.insert(0, argparse.Action([], "options", metavar="[OPTION ...]"))
        super().add_usage(usage, shown, [], prefix)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        short = isinstance(action, _Assignment) and len(action.option_strings) > 1
        return "-p NAME=VALUE, --NAME VALUE" if short else super()._format_action_invocation(action)

    def _split_lines(self, text: str, width: int) -> list[str]:
        split = super()._split_lines
        return [line for part in text.split("\n") for line in split(part, width)]


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
        if name[2:] in _READ:
            hint = f"; how INPUT is read is given as --read {name[2:]}=VALUE"
        elif name.startswith("--") and "-p" in options:
            hint += f"; parameters of a method are given as -p {name[2:].replace('-', '_')}=VALUE"
        self.error(f"unrecognized arguments: {' '.join(arguments)}{hint}")


class _Assignment(argparse.Action):
    """Put NAME=VALUE, or the value of an option --NAME, into a mapping."""

    def __call__(self, parser: Any, args: Any, given: Any, flag: str | None = None) -> None:
        name, separator, text = given.partition("=")
        if flag not in ("-p", "--read"):
            name, text = str(flag)[2:], given
        elif not separator:
            parser.error(f"argument {flag}: {given!r} is not NAME=VALUE")
        name = name.strip().replace("-", "_")
        known: Any = value(text)
        if self.dest == "read":
            if name not in _READ:
                parser.error(f"argument --read: {name!r} is not one of {', '.join(_READ)}")
            known = _BOOLEANS.get(text.lower(), text) if name == "header" else text
        setattr(args, self.dest, {**getattr(args, self.dest), name: known})


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


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer >= 1")
    return int(text)


def _names(text: str) -> list[str]:
    """Read names with commas between; quotes protect commas."""
    return next(csv.reader([text]), [])


def parser_of() -> _Parser:
    """Return the parser of the command line."""
    parser = _Parser(
        prog="heatsketch",
        description="Compute coordinates whose Euclidean distances are diffusion distances.",
        epilog="Points come from a file (.npy, .npz, .csv, .tsv, .txt, also with .gz, .parquet, "
        ".xlsx, .h5ad, .zarr), from standard input (-), or from a built-in set by its name "
        "(digits, swiss_roll, ...).",
        parents=[COMMON],
    )
    parser.add_argument("--version", action="version", version=f"heatsketch {__version__}")
    parser.add_argument("--verbose", **_flag("with --version: versions of all libraries, too"))
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="verb")
    for name, add_options in VERBS.items():
        description, _, example = str(add_options.__doc__).partition("\n\n")
        verb = commands.add_parser(
            name,
            help=description[0].lower() + description[1:-1],
            description=description,
            epilog=f"All commands take -q, --force and --debug, too. {example.strip()}",
        )
        add_options(verb)
        verb.set_defaults(usage_error=verb.error, refuse=verb.refuse)
    return parser


def _text(metavar: str, said: str, **more: Any) -> dict[str, Any]:
    return {"metavar": metavar, "help": said, **more}


def _flag(said: str) -> dict[str, Any]:
    return {"action": "store_true", "help": said}


def _file(said: str) -> dict[str, Any]:
    return _text("FILE", said, type=Path)


COMMON = _Parser(add_help=False)  # options of all commands, that may stand anywhere
COMMON.add_argument("-q", "--quiet", **_flag("print no progress and no warnings"))
COMMON.add_argument("--force", **_flag("replace files that exist"))
COMMON.add_argument("--debug", **_flag("print the traceback of an error"))

_INPUT = _text("INPUT", "file of points, or built-in set; - for text on standard input")
_METHOD = _text("METHOD", f"a name of 'heatsketch methods' (default {DEFAULT_METHOD})")
_METHOD["default"] = DEFAULT_METHOD
_JSON = _flag("print the result as JSON")
_PLOT = _file("draw a picture: .png, .pdf or .svg")
_WHOLE = _flag("show far points at their places in pictures, however small the others are")
_METADATA = _file("how the output was made, for score; .npz, .parquet and .h5ad hold it")
_KEY = _text("NAME", "name in an .h5ad output (default X_heat, X_pca, ...)")
_CHOSEN = "genes of an .h5ad to colour by, or how many of the most variable (default 20)"
_GENES = _text(
    "NAME[,NAME...]", _CHOSEN, type=lambda text: int(text) if text.isdecimal() else text.split(",")
)
_LEVEL = _text("P", "probability of the intervals (default 0.95)", type=float, default=0.95)


def _add_reading(parser: _Parser) -> None:
    """Add the options of reading that all verbs share that read points."""
    add = parser.add_argument_group("reading INPUT").add_argument
    add("--label", action="append", **_text("NAME", "column of labels (may be repeated)"))
    add("--id", action="append", **_text("NAME", "column of ids (may be repeated)"))
    gaps = "missing numbers: refuse them, drop their rows, or fill in the median of the column; "
    gaps += "drop and median count cells that are not numbers as missing (default error)"
    add("--missing", choices=("error", "drop", "median"), help=gaps)
    _add_assignments(add, ["--read"], "read", _READ)


def _add_assignments(add: Any, flags: list[str], dest: str, known: dict[str, str]) -> None:
    """Add an option that takes NAME=VALUE, of which some names are known."""
    listed = "\n".join(f"{name.replace('_', '-')}: {said}" for name, said in known.items())
    add(*flags, action=_Assignment, dest=dest, default={}, **_text("NAME=VALUE", listed))


def _add_points(parser: _Parser) -> None:
    """Add the options of verbs that fit: how points are read, what they are, and parameters."""
    parser.add_argument("input", **_INPUT)
    _add_reading(parser)
    add = parser.add_argument_group("points in INPUT").add_argument
    names: dict[str, Any] = {"type": _names, "action": "extend", "metavar": "NAME[,NAME...]"}
    add("--features", **names, help="columns that are features (default: all numeric ones)")
    add("--exclude", **names, help="columns that are not features, but passed through")
    add("--standardize", **_flag("give every column mean 0 and variance 1"), default=None)
    graph = "INPUT holds a graph: an edge list (two columns of names, perhaps one of weights), a "
    graph += "matrix (.mtx, .npz), or in .h5ad the entry NAME of obsp (default connectivities); "
    graph += "the default of --filter is then heat"
    add("--graph", nargs="?", const=True, **_text("NAME", graph))
    about = "'heatsketch methods METHOD' lists all parameters of a method, with their defaults"
    add = parser.add_argument_group("parameters", about).add_argument
    flags = ["-p", *(f"--{name.replace('_', '-')}" for name in _PARAMETERS)]
    _add_assignments(add, flags, "parameters", _PARAMETERS)


def _embed(parser: _Parser) -> None:
    """Embed a file of points.

    Example: heatsketch embed table.csv -o map.csv --plot map.png
    """
    _add_points(parser)
    add = parser.add_argument
    add("-o", "--output", **_file("file for the embedding; - for .csv on standard output"))
    add("-m", "--method", **_METHOD)
    add("--plot", **_PLOT)
    add("--whole", **_WHOLE)
    add("--save-model", **_file("keep the fitted model, for transform and hs.load_model"))
    add("--in-place", **_flag("add the embedding to INPUT, which is .h5ad"))
    add("--output-key", **_KEY)
    add("--intervals", **_flag("add a column: share of neighbours that are certain (heat-sketch)"))
    late = "add columns of pseudotime with error bars, from 0 at this root (id, or number of a row)"
    add("--pseudotime", **_text("ID", late))
    some = "fit a sample of N points and map all others by it, block by block, as do files larger "
    some += "than memory: .npy, .parquet, .csv, .h5ad, .zarr and folders of parts"
    add("--fit-points", type=_positive, **_text("N", some))
    add("--resume", **_flag("go on with a run by blocks that was killed (OUTPUT.partial)"))
    workers = "map blocks by workers of Dask: local:N on this machine, or the address of a "
    workers += "scheduler (tcp://HOST:PORT) whose workers share the folders of INPUT and OUTPUT"
    add("--cluster", **_text("CLUSTER", workers))
    add("--metadata", **_METADATA)


def _transform(parser: _Parser) -> None:
    """Place points by a model that embed has kept.

    Example: heatsketch transform my.model new.csv -o new-map.csv
    """
    add = parser.add_argument
    add("model", **_text("MODEL", "file of a model, from embed --save-model", type=Path))
    add("input", nargs="?", **_INPUT)
    _add_reading(parser)
    add("-o", "--output", **_file("file for the coordinates; - for .csv on standard output"))
    add("--output-key", **_KEY)
    add("--info", **_flag("print what MODEL is, without INPUT"))
    add("--metadata", **_METADATA)


def _report(parser: _Parser) -> None:
    """Embed points, and show them in a page of HTML.

    Example: heatsketch report table.csv -o page.html --label kind
    """
    _add_points(parser)
    add = parser.add_argument
    add("-o", "--output", required=True, **_file(".html, which any browser shows, offline"))
    add("-m", "--method", **_METHOD)
    slider = "diffusion times of the slider (default: some about that of the embedding)"
    add("--times", type=value, **_text("T[,T...]", slider))
    add("--genes", **_GENES)


def _score(parser: _Parser) -> None:
    """Measure how an embedding distorts diffusion distances.

    Example: heatsketch score table.csv map.csv
    """
    _add_points(parser)
    add = parser.add_argument
    add("embedding", **_text("EMBEDDING", "file of coordinates, with the rows of INPUT"))
    add("--metadata", **_file("how EMBEDDING (text, .npy) was made: FILE of embed --metadata"))
    add("--embedding-key", **_text("KEY", "array of EMBEDDING to read (.npz, .h5ad)"))
    add("--pairs", type=_positive, **_text("N", "random pairs (default: all of 2,048 points)"))
    add("--json", **_JSON)


def _audit(parser: _Parser) -> None:
    """Say where a picture of points, made by any method, can be believed.

    Example: heatsketch audit table.csv umap.csv -o audit.html
    """
    _add_points(parser)
    add = parser.add_argument
    picture = "file of coordinates with the rows of INPUT, or with their ids; or an entry of obsm "
    picture += "of INPUT, such as X_umap"
    add("picture", **_text("PICTURE", picture))
    add("-o", "--output", required=True, **_file(".html, which any browser shows, offline"))
    add("--table", **_file("a row for each point: trust, neighbours, order, dubious; .csv or .tsv"))
    add("--beside", **_text("PICTURE", "another picture, which stands beside the first"))
    add("--genes", **_GENES)


def _compare(parser: _Parser) -> None:
    """Compare methods on one file, or the data of two.

    Example: heatsketch compare before.csv after.csv
    """
    _add_points(parser)
    add = parser.add_argument
    add("other", nargs="?", **_text("OTHER", "file that INPUT is compared with, read alike"))
    written = "folder for table, picture and embeddings of the methods; with OTHER, a file for the "
    written += "discrepancy of each point: .csv, .tsv or .txt"
    add("-o", "--output", type=Path, **_text("PATH", written))
    add("--methods", type=_names, **_text("A[,B...]", "some methods, or all"))
    seeds = "runs with different seeds, for the stability (default 2)"
    add("--seeds", type=_positive, default=2, **_text("S", seeds))
    same = "OTHER holds the same points in the same order; else points are matched by ids, and "
    same += "files without common ids are compared as samples of different points"
    add("--same-rows", **_flag(same))
    add("--level", **_LEVEL)
    add("--plot", **_PLOT)
    add("--whole", **_WHOLE)


def _distances(parser: _Parser) -> None:
    """Print diffusion distances, the nearest first.

    Example: heatsketch distances table.csv --from sample_7
    """
    _add_points(parser)
    add = parser.add_argument
    origin = "point (id, or number of the row) whose distances to all points are wanted"
    add("--from", dest="origin", **_text("ID", origin))
    pairs = "text with a pair in each line: two ids, or numbers of rows from 0 without ids"
    add("--pairs", dest="pairs_file", **_file(pairs))
    add("--model", **_file("use diffusion and time of a model that was fitted to INPUT"))
    add("-o", "--output", **_file("file for the table: .csv, .tsv or .txt (default: print it)"))
    add("--level", **_LEVEL)
    add("--simultaneous", **_flag("let all intervals hold at once, not each by itself"))


def _scales(parser: _Parser) -> None:
    """Show which times, bandwidth and dimension suit points.

    Example: heatsketch scales table.csv --plot scales.png
    """
    _add_points(parser)
    parser.add_argument("--plot", **_PLOT)
    parser.add_argument("--json", **_JSON)


def _methods(parser: _Parser) -> None:
    """List the methods, or the parameters of one.

    Example: heatsketch methods heat-embedding
    """
    parser.add_argument("method", nargs="?", **_text("METHOD", "whose parameters are listed"))


_ALL = (_embed, _transform, _report, _score, _audit, _compare, _distances, _scales, _methods)
VERBS = {add_options.__name__[1:]: add_options for add_options in _ALL}  # help: the docstrings
