"""The arguments of the command line: a table of verbs, a table of options, and their parser."""

import argparse
import csv
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from heatsketch import __version__
from heatsketch._words import did_you_mean

VERBS = {  # the action of each, and an example
    "embed": ("Embed a file of points.", "table.csv -o map.csv --plot map.png"),
    "transform": ("Map points by a model that embed saved.", "my.model new.csv -o map.csv"),
    "report": ("Embed points, and show them in a page of HTML.", "table.csv -o page.html"),
    "score": ("Measure how an embedding distorts diffusion distances.", "table.csv map.csv"),
    "audit": ("Find where a picture can be believed.", "table.csv umap.csv -o audit.html"),
    "compare": ("Compare methods on one file, or the data of two.", "before.csv after.csv"),
    "distances": ("Print diffusion distances, the nearest first.", "table.csv --from sample_7"),
    "markers": ("Find the features that distinguish groups.", "table.csv --label kind --group a"),
    "scales": ("Find diffusion times, bandwidth and dimension.", "table.csv --plot s.png"),
    "methods": ("List the methods, or the parameters of one.", "heat-embedding"),
}
FORMAT = ("key", "sep", "decimal", "header")  # names of --read

_FITTING = "embed report score audit compare distances scales"
_READING = f"transform {_FITTING}"
_ENCODING = "embed report score audit compare"
_POINTS = "file of points, or built-in set; - for text on standard input"


def value(text: str) -> Any:
    """Read a number, True, False, None, several with commas between, or a word."""
    if "," in text:
        return [value(part) for part in text.split(",")]
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    words = {"true": True, "yes": True, "false": False, "no": False, "none": None}
    return words.get(text.lower(), text)


def _assignment(text: str) -> tuple[str, str]:
    name, separator, assigned = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name.strip().replace("-", "_"), assigned


# By heading: verbs, names, placeholder of the value (None for a switch; in brackets if it may be
# left out), meaning, and more.
# fmt: off
_OPTIONS: dict[str, list[tuple[Any, ...]]] = {
    "": [
        ("all", "-q --quiet", None, "print no progress and no warnings"),
        ("all", "--force", None, "replace files that exist"),
        ("all", "--debug", None, "print the traceback of an error"),
        ("all", "--verbose", None, "print more: what columns became with --encode, log L of an "
         "audit; with --version the versions of all libraries"),
        ("transform", "model", "MODEL", "file of a model, from embed --save-model"),
        (f"markers {_FITTING}", "input", "INPUT", _POINTS),
        ("transform", "input", "[INPUT]", _POINTS),
        ("score", "embedding", "EMBEDDING", "file of coordinates, with the rows of INPUT"),
        ("audit", "picture", "PICTURE", "file with the rows or ids of INPUT, or entry of its obsm"),
        ("compare", "other", "[OTHER]", "file compared with INPUT, read alike"),
        ("methods", "method", "[METHOD]", "whose parameters are listed"),
        ("embed transform", "-o --output", "FILE", "for coordinates; - is .csv on standard output"),
        ("report audit", "-o --output", "FILE", ".html, for any browser", {"required": True}),
        ("compare", "-o --output", "PATH", ".png, .pdf or .svg for a sheet of pictures with their "
         "numbers, or a folder for table, sheet and embeddings; with OTHER, a .csv, .tsv or .txt "
         "for the discrepancy of each point"),
        ("distances markers", "-o --output", "FILE", ".csv, .tsv, .txt (default: print)",
         {"default": "-"}),
        ("markers", "--group", "NAME[,NAME...]", "labels of the group (default: each in turn)"),
        ("markers", "--against", "NAME[,NAME...]", "labels of the others (default: all others)"),
        ("embed report", "-m --method", "METHOD", "a name of 'heatsketch methods' (default "
         "heat-embedding)", {"default": "heat-embedding"}),
        ("embed scales", "--plot", "FILE", "draw a picture: .png, .pdf or .svg"),
        ("embed compare", "--whole", None, "show far points at their places in pictures"),
        ("embed", "--save-model", "FILE", "save the fitted model, for transform and hs.load_model"),
        ("embed", "--in-place", None, "add the embedding to INPUT, which is .h5ad"),
        ("embed transform", "--output-key", "NAME", "name in .h5ad (default X_heat, X_pca, ...)"),
        ("embed", "--intervals", None, "add a column: fraction of certain neighbours (sketches)"),
        ("embed", "--pseudotime", "ID", "add pseudotime with error bars from this root, id or row, "
         "or from several: COLUMN=VALUE"),
        ("embed", "--places", "FILE", "keep to the places of an earlier picture, joined by id; "
         "points without a place fit in (heat-embedding); adds a column: who moved"),
        ("embed", "--fit-points", "N", "fit a sample of N points and map all others by blocks, as "
         "files larger than memory: .npy, .parquet, .arrow, .csv, .h5ad, .zarr, folders of parts"),
        ("embed", "--resume", None, "resume a killed run by blocks (OUTPUT.partial)"),
        ("embed", "--cluster", "CLUSTER", "map blocks by workers of Dask: local:N on this machine, "
         "or a scheduler (tcp://HOST:PORT) whose workers share the folders of INPUT and OUTPUT"),
        ("transform", "--info", None, "describe MODEL, without INPUT"),
        ("embed transform", "--metadata", "FILE", "record how the output was made, for score"),
        ("score", "--metadata", "FILE", "FILE of embed --metadata", {"dest": "made"}),
        ("score audit", "--coordinates", "NAME[,NAME...]", "columns of EMBEDDING or PICTURE "
         "(default: those with the names of coordinates, such as UMAP1, UMAP2, or x, y)"),
        ("score", "--embedding-key", "KEY", "array of EMBEDDING to read (.npz, .h5ad)"),
        ("score", "--pairs", "N", "random pairs (default: all of 2,048 points)"),
        ("score scales", "--json", None, "print the result as JSON"),
        ("report", "--times", "T[,T...]", "times of the slider (default: some around the chosen)"),
        ("report audit", "--genes", "NAME[,NAME...]", "genes for colours, or their number (20)"),
        ("audit", "--table", "FILE", "a row for each point: trust, neighbours, order, dubious"),
        ("audit", "--beside", "PICTURE", "another picture, shown beside the first"),
        ("compare", "--methods", "NAME[,NAME...]", "methods, or all; also umap, pacmap, phate, "
         "opentsne, or such as sklearn.manifold.MDS; files of coordinates, entries of obsm; blanks "
         "may stand between", {"nargs": "+"}),
        ("compare", "--seeds", "N", "runs with different seeds (default 2, 1 for a sheet)"),
        ("compare", "--same-rows", None, "OTHER holds the same points in the same order; else they "
         "are matched by ids, and without common ids compared as samples of different points"),
        ("distances", "--from", "ID", "point, id or row, to measure from", {"dest": "origin"}),
        ("distances", "--pairs", "FILE", "text, two ids in each line", {"dest": "pairs_file"}),
        ("compare distances", "--level", "P", "probability of intervals (default 0.95)"),
        ("distances", "--simultaneous", None, "intervals that hold at once, not each by itself"),
    ],
    "reading INPUT": [
        (f"markers {_READING}", "--label", "COLUMN", "column of labels (may be repeated)"),
        (_READING, "--id", "COLUMN", "column of ids (may be repeated)", {"dest": "ids"}),
        (_READING, "--missing", "{error,drop,median,keep}", "missing numbers: refuse them "
         "(default), drop their rows, fill in medians of columns, or keep them for a method that "
         "fills them by the nearest rows (heat-embedding, heat-sketch, diffusion-map); with drop "
         "and median, cells that are not numbers are missing, too",
         {"choices": ("error", "drop", "median", "keep")}),
        (f"markers {_READING}", "--read", "NAME=VALUE", "key (array or sheet); for text "
         "sep (a character, tab or space), decimal (default .) and header (yes or no, whether the "
         "first row holds names); sep and header are recognised by default"),
    ],
    "points in INPUT": [
        (_FITTING, "--features", "NAME[,NAME...]", "feature columns"),
        (_FITTING, "--exclude", "NAME[,NAME...]", "columns to pass through"),
        (_FITTING, "--standardize", None, "give every column mean 0 and variance 1"),
        (_ENCODING, "--encode", None, "features from columns of all types, also categories, dates "
         "and booleans; each column counts alike (hs.TableEncoder)"),
        (_FITTING, "--graph", "[NAME]", "INPUT holds a graph: an edge list (two columns of names, "
         "perhaps one of weights), a matrix (.mtx, .npz), or in .h5ad the entry NAME of obsp "
         "(default connectivities); --filter is then heat"),
    ],
    "parameters (heatsketch methods METHOD lists all)": [
        (_FITTING, "-p", "NAME=VALUE", "any parameter of the method", {"dest": "parameters"}),
        (_FITTING, "--n-components", "VALUE", "number of coordinates"),
        (_FITTING, "--time", "VALUE", "diffusion time: a number, several (2,8), or a rule (auto; "
         "8 in a free layout)"),
        (_FITTING, "--n-neighbors", "VALUE", "number of nearest neighbours of each point"),
        (_FITTING, "--epsilon", "VALUE", "bandwidth: a number, or self-tuning, ksum, ..."),
        (_FITTING, "--affinity", "VALUE", "knn, variable, dense, radius, or precomputed"),
        (_FITTING, "--metric", "VALUE", "distance of points: euclidean, cosine, correlation, ..."),
        (_FITTING, "--normalization", "VALUE", "of affinities: markov, symmetric, bistochastic"),
        (_FITTING, "--alpha", "VALUE", "power of the density by which affinities are divided"),
        (_FITTING, "--filter", "VALUE", "function of eigenvalues: power, heat, accumulated"),
        (_FITTING, "--device", "VALUE", "device of torch that does the work, such as cuda"),
        (_FITTING, "--layout", "VALUE", "of heat-embedding: auto, free, or linear"),
        (_FITTING, "--neighbor-weight", "VALUE", "of neighbours in a free layout (default 0.3)"),
        (_FITTING, "--spread", "VALUE", "of a free layout: 0 keeps distances, 1 only their order, "
         "auto (default) by the data"),
        (_FITTING, "--path-weight", "VALUE", "of path lengths in a free layout (default 0.3): "
         "0, where the plane holds them, to 1, in any case"),
        (_FITTING, "--random-state", "VALUE", "seed of the random numbers (default 0)"),
    ],
}
# fmt: on


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line and suggest the nearest known word."""

    def error(self, message: str) -> NoReturn:
        """Print the message, without the usage, and end with code 2."""
        wrong = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if wrong:
            message += did_you_mean(wrong[1], re.findall(r"[^\s,']+", wrong[2]), end="")
        self.exit(2, f"heatsketch: error: {message} (see {self.prog} --help)\n")

    def refuse(self, arguments: Sequence[str]) -> NoReturn:
        """End with a usage error for arguments that the verb does not have."""
        options = [name for action in self._actions for name in action.option_strings]
        name = arguments[0].partition("=")[0]
        hint = did_you_mean(name, options, end="")
        if name[2:] in FORMAT:
            hint = f"; how INPUT is read is given as --read {name[2:]}=VALUE"
        elif name.startswith("--") and "-p" in options:
            hint += f"; parameters of a method are given as -p {name[2:].replace('-', '_')}=VALUE"
        self.error(f"unrecognized arguments: {' '.join(arguments)}{hint}")


_KINDS: dict[str | None, dict[str, Any]] = {  # by the placeholder of the value
    None: {"action": "store_const", "const": True},
    "FILE": {"type": Path},
    "PATH": {"type": Path},
    "MODEL": {"type": Path},
    "N": {"type": int},
    "P": {"type": float, "default": 0.95},
    "T[,T...]": {"type": lambda text: [value(part) for part in text.split(",")]},
    "COLUMN": {"action": "append"},
    "NAME[,NAME...]": {
        "type": lambda text: next(csv.reader([text]), []),  # quotes protect commas
        "action": "extend",
    },
    "NAME=VALUE": {"type": _assignment, "action": "append"},
    "VALUE": {"action": "append", "dest": "parameters"},
}


def _add_options(parser: _Parser, verb: str) -> None:
    """Add the options of a verb to its parser."""
    for heading, rows in _OPTIONS.items():
        own = [row for row in rows if verb in row[0].split()]
        group = parser.add_argument_group(heading) if heading and own else parser
        for _, names, metavar, meaning, *more in own:
            kind = _KINDS.get(metavar, {}) | (more[0] if more else {})
            if metavar == "VALUE":
                kind["type"] = lambda text, name=names[2:]: _assignment(f"{name}={text}")
            if metavar and metavar[0] == "[":  # argparse writes the brackets
                kind, metavar = {"nargs": "?", "const": True}, metavar[1:-1]
            group.add_argument(*names.split(), help=meaning, metavar=metavar, **kind)


def parser_of() -> _Parser:
    """Return the parser of the command line; common options may stand before and after a verb."""
    parser = _Parser(
        prog="heatsketch",
        usage="%(prog)s [OPTION ...] COMMAND ...",
        description="Compute coordinates whose Euclidean distances are diffusion distances.",
        epilog="Points come from a file (.npy, .npz, .csv, .tsv, .txt, also with .gz, .parquet, "
        ".arrow, .feather, .xlsx, .h5ad, .zarr), from standard input (-), or from a built-in set "
        "by its name (digits, swiss_roll, ...).",
        allow_abbrev=False,
    )
    _add_options(parser, "all")
    parser.add_argument("--version", action="version", version=f"heatsketch {__version__}")
    commands = parser.add_subparsers(
        required=True, metavar="COMMAND", dest="verb", prog="heatsketch"
    )
    for name, (does, example) in VERBS.items():
        needed = [row[2] for row in _OPTIONS[""] if name in row[0].split() and row[1][0] != "-"]
        verb = commands.add_parser(
            name,
            usage=" ".join(["%(prog)s [OPTION ...]", *needed]),
            help=does[0].lower() + does[1:-1],
            description=does,
            epilog=f"Example: heatsketch {name} {example}",
            allow_abbrev=False,
            argument_default=argparse.SUPPRESS,
        )
        _add_options(verb, "all")
        _add_options(verb, name)
        verb.set_defaults(usage_error=verb.error, refuse=verb.refuse)
        parser.set_defaults(**dict.fromkeys(action.dest for action in verb._actions))
    return parser


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the arguments of a verb; exit after --help, --version and wrong usage."""
    parser = parser_of()
    if not argv:
        parser.print_help(sys.stderr)
        parser.exit(2)
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        args.refuse(unknown)
    args.parameters = {name: value(text) for name, text in args.parameters or ()}
    args.read = {name: value(x) if name == "header" else x for name, x in args.read or ()}
    for name in args.read.keys() - FORMAT:
        args.usage_error(f"argument --read: {name!r} is not one of {', '.join(FORMAT)}")
    return args
