"""The command line: embed a file, score an embedding, choose a bandwidth, write built-in data."""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import json
import logging
import os
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import heatsketch as hs
from heatsketch import bandwidth, datasets, io, plot

logger = logging.getLogger("heatsketch")

METHODS: dict[str, Callable[..., Any]] = {
    "heat-sketch": hs.HeatSketch,
    "diffusion-map": hs.DiffusionMap,
}
RULES = ("self-tuning", *bandwidth.RULES)
ALL_PAIRS_UP_TO = 1000  # points; n²/2 distances and as many columns of f(A) beyond it
SAMPLE = 500
AGREEMENT_UP_TO = 20_000  # points; brute-force neighbours in the input take longer than the sketch
EXPECTED = (ValueError, OSError, ImportError, ArithmeticError, MemoryError)
WRITERS = {".csv": "pyarrow", ".tsv": "pyarrow", ".parquet": "pyarrow", ".h5ad": "h5py"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; those of the process by default.

    Returns
    -------
    int
        0 done, 1 the data or the computation failed, 2 wrong usage, 130 interrupted.

    Examples
    --------
    >>> from heatsketch.cli import main
    >>> main(["ksum", "no-such-file.csv", "-q"])
    1
    """
    parser = _parser()
    try:
        args = parser.parse_args(argv)
        with _reporting(quiet=args.quiet):
            args.run(args)
        sys.stdout.flush()
    except SystemExit as stop:  # argparse ends --help, --version and wrong usage this way
        return stop.code if isinstance(stop.code, int) else 2
    except KeyboardInterrupt:
        _say("interrupted; no file was left half-written")
        return 130
    except BrokenPipeError:
        # The reader of stdout went away; keep the interpreter from failing again at its last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if args.debug:
            traceback.print_exc()
        _say(f"error: {_describe(error)}")
        return 1
    return 0


def _describe(error: Exception) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"out of memory; {text or 'use fewer points or --affinity knn'}"
    if isinstance(error, EXPECTED) and text:
        return text
    return f"{type(error).__name__}: {text} (--debug shows where)"


def _say(text: str) -> None:
    print(f"heatsketch: {text}", file=sys.stderr, flush=True)


# Progress and warnings


@contextmanager
def _reporting(*, quiet: bool) -> Iterator[None]:
    """Send the library's log records and warnings to stderr, as lines, while the block runs."""
    level, progress = logger.level, None if quiet else _Progress()
    if progress is not None:
        logger.addHandler(progress)
        logger.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings():
            if quiet:
                warnings.simplefilter("ignore")
            warnings.showwarning = _show_warning
            yield
    finally:
        if progress is not None:
            logger.removeHandler(progress)
            logger.setLevel(level)
            progress.close()


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _say(f"warning: {' '.join(str(message).split())}")


class _Progress(logging.Handler):
    """Write one line per log record, but nothing for a run that ends within `delay` seconds."""

    def __init__(self, delay: float = 2.0) -> None:
        super().__init__(logging.INFO)
        self.start, self.delay = time.monotonic(), delay
        self.latest: str | None = None
        self.timer = threading.Timer(delay, self._speak)
        self.timer.daemon = True
        self.timer.start()

    def emit(self, record: logging.LogRecord) -> None:
        self.latest = record.getMessage()
        if time.monotonic() - self.start >= self.delay:
            self._speak()

    def close(self) -> None:
        self.timer.cancel()
        self.latest = None
        super().close()

    def _speak(self) -> None:
        with self.lock or threading.RLock():
            if self.latest is not None:
                seconds = time.monotonic() - self.start
                print(f"[{seconds:5.1f} s] {self.latest}", file=sys.stderr, flush=True)
                self.latest = None


# Arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="heatsketch",
        description="Coordinates whose Euclidean distances are diffusion distances.",
        epilog="Files: .npy, .npz, .csv, .tsv, .parquet, .h5ad; a built-in set by name (heatsketch "
        "datasets lists them); a directory of MNIST IDX files.",
    )
    parser.add_argument("--version", action="version", version=f"heatsketch {hs.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in (_add_embed, _add_score, _add_ksum, _add_datasets):
        command = add(commands)
        command.add_argument("-q", "--quiet", action="store_true", help="no progress, no warnings")
        command.add_argument("--debug", action="store_true", help="show where an error came from")
        command.set_defaults(usage_error=command.error)
    return parser


def _add_embed(commands: Any) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser("embed", help="embed a file of points")
    command.set_defaults(run=_embed)
    _add_input(command)
    add = command.add_argument
    add("-o", "--output", type=Path, required=True, metavar="FILE", help="the embedding")
    add("--method", choices=METHODS, default="heat-sketch", help="default heat-sketch")
    _add_option(command, "n_components", type=_or_auto(int), metavar="K", help="coordinates")
    _add_option(command, "time", type=_times, metavar="T[,T...]", help="diffusion time(s)")
    _add_option(command, "kind", choices=("gaussian", "rademacher"), help="random numbers")
    _add_option(command, "delta", type=float, help="what auto may leave out")
    _add_diffusion(command)
    add("--output-key", metavar="NAME", help="name of the embedding in an .h5ad output")
    add("--plot", type=Path, metavar="FILE", help="also draw it: .png, .pdf or .svg")
    _add_force(command)
    return command


def _add_score(commands: Any) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        "score", help="measure how an embedding distorts the diffusion distance"
    )
    command.set_defaults(run=_score)
    _add_input(command)
    add = command.add_argument
    add("embedding", metavar="EMBEDDING", help="file of coordinates, same rows as INPUT")
    add("--embedding-key", metavar="KEY", help="array of EMBEDDING to read (.npz, .h5ad)")
    add("--time", type=_number, metavar="T", default=argparse.SUPPRESS, help="diffusion time")
    _add_diffusion(command)
    add("--pairs", type=_positive, metavar="N", help="compare N pairs among a random sample")
    add("--json", action="store_true", help="print JSON")
    return command


def _add_ksum(commands: Any) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        "ksum", help="bandwidth and dimension of a file of points"
    )
    command.set_defaults(run=_ksum)
    _add_input(command)
    _add_seed(command)
    command.add_argument("--plot", type=Path, metavar="FILE", help="draw the slopes")
    command.add_argument("--json", action="store_true", help="print JSON")
    _add_force(command)
    return command


def _add_datasets(commands: Any) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        "datasets", help="list the built-in sets, or write one to a file"
    )
    command.set_defaults(run=_datasets)
    command.add_argument("name", nargs="?", metavar="NAME", help="the set to write")
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="where to write it")
    _add_force(command)
    return command


def _add_input(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("input", metavar="INPUT", help="file of points, or the name of a built-in set")
    add("--label", action="append", default=[], metavar="NAME", help="label column (repeatable)")
    add("--id", action="append", default=[], metavar="NAME", help="id column (repeatable)")
    add("--key", help="array of INPUT to read (.npz, .h5ad)")


def _add_diffusion(command: argparse.ArgumentParser) -> None:
    affinities = ("knn", "dense", "radius", "precomputed")
    normalizations = ("symmetric", "bistochastic", "markov")
    _add_option(command, "filter", choices=("power", "heat"), help="function of the eigenvalues")
    _add_option(command, "epsilon", type=_epsilon, help=f"a number or {', '.join(RULES)}")
    _add_option(command, "affinity", choices=affinities, help="which pairs are joined")
    _add_option(command, "n_neighbors", type=int, metavar="M", help="of the knn graph")
    _add_option(command, "normalization", choices=normalizations, help="of the affinity")
    _add_option(command, "alpha", type=float, help="power of the density divided out")
    _add_option(command, "tol", type=float, help="accuracy of iterations")
    _add_option(command, "max_iter", type=int, metavar="N", help="limit of iterations")
    _add_seed(command)


def _add_option(command: argparse.ArgumentParser, name: str, *, help: str, **kwargs: Any) -> None:
    """Add an option that stays out of the result unless given, so that defaults live in one place.

    The help text reads the defaults from the signatures of the methods.
    """
    found = {method: _defaults(make)[name] for method, make in METHODS.items() if _has(make, name)}
    if len(found) == len(METHODS) and len(set(map(str, found.values()))) == 1:
        text = f"default {next(iter(found.values()))}"
    else:
        text = ", ".join(f"{method}: default {value}" for method, value in found.items())
    kwargs.setdefault("metavar", None if "choices" in kwargs else name[0].upper())
    command.add_argument(
        _flag(name), default=argparse.SUPPRESS, help=f"{help} ({text})".replace("%", "%%"), **kwargs
    )


def _add_seed(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--random-state", type=int, default=0, metavar="S", help="seed (default 0)"
    )


def _add_force(command: argparse.ArgumentParser) -> None:
    command.add_argument("--force", action="store_true", help="replace files that exist")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    return {name: p.default for name, p in inspect.signature(function).parameters.items()}


def _has(function: Callable[..., Any], name: str) -> bool:
    return name in inspect.signature(function).parameters


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def _positive(text: str) -> int:
    value = _number(text)
    if not isinstance(value, int) or value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return value


def _or_auto(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    def value(text: str) -> Any:
        try:
            return text if text == "auto" else kind(text)
        except (ValueError, argparse.ArgumentTypeError):
            raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor auto") from None

    return value


def _times(text: str) -> Any:
    times = [_or_auto(_number)(part) for part in text.split(",")]
    if len(times) > 1 and "auto" in times:
        raise argparse.ArgumentTypeError("auto stands alone")
    return times if len(times) > 1 else times[0]


def _epsilon(text: str) -> float | str:
    try:
        return text if text in RULES else float(text)
    except ValueError:
        rules = ", ".join(RULES)
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor {rules}") from None


# Commands


def _embed(args: argparse.Namespace) -> None:
    options = _method_options(args)
    _check_output(args, args.output, io.SUFFIXES)
    if args.plot is not None:
        _check_output(args, args.plot, plot.SUFFIXES)
        plot.check_picture(args.plot)
    table = _read(args)
    estimator = METHODS[args.method](**options)
    start = time.monotonic()
    Y = estimator.fit_transform(table.values)  # (n, k)
    seconds = time.monotonic() - start
    names = tuple(str(name) for name in estimator.get_feature_names_out())
    key = {} if args.output_key is None else {"key": args.output_key}
    logger.info("writing %s", args.output)
    io.write_table(args.output, Y, names, table, force=args.force, **key)
    if args.plot is not None:
        labels = None if table.label is None else table.extra[table.label]
        title = _title(args, table, estimator)
        logger.info("drawing %s", args.plot)
        plot.scatter(Y, labels, title=title, names=names, path=args.plot)
    lines = _embed_summary(args, table, estimator, Y)
    lines["seconds"] = f"{seconds:.1f}"
    lines["written"] = ", ".join(str(path) for path in (args.output, args.plot) if path)
    _print_lines(lines)


def _method_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the method's options that were given, or end with a usage error."""
    known = {name for make in METHODS.values() for name in _defaults(make)}
    options = {name: value for name, value in vars(args).items() if name in known}
    for name, value in options.items():
        owners = [method for method, make in METHODS.items() if _has(make, name)]
        if args.method not in owners:
            args.usage_error(
                f"{_flag(name)} is not an option of {args.method}; it belongs to "
                f"{', '.join(owners)}"
            )
        if value == "auto" and args.method != "diffusion-map":
            args.usage_error(f"{_flag(name)} auto belongs to diffusion-map; pass a number")
    return options


def _embed_summary(args: argparse.Namespace, table: Any, estimator: Any, Y: Any) -> dict[str, str]:
    n, d = table.values.shape
    facts = estimator.diagnostics_
    components = facts.get("components", "unknown number of")  # not counted for every operator
    lines = {
        "input": f"{table.source}: {n:,} points, {d:,} features",
        "method": f"{args.method}, {_parameters(estimator)}",
        "epsilon": _epsilon_text(estimator.epsilon_),
        "graph": f"{components} connected component(s), {facts['isolated']} isolated point(s)",
    }
    groups = None if table.label is None else plot.categories(table.extra[table.label])
    if groups is not None and n <= AGREEMENT_UP_TO:
        logger.info("agreement of the labels of neighbours")
        figures = [f"embedding {_agreement(Y, groups[0]):.3f}"]
        if estimator.get_params()["affinity"] != "precomputed":
            figures.append(f"input {_agreement(table.values, groups[0]):.3f}")
        lines["agreement"] = f"{', '.join(figures)} ({table.label} by 10 nearest, leave one out)"
    return lines


def _agreement(X: Any, codes: Any) -> float:
    """Return the share of points whose 10 nearest others vote for their own label."""
    from scipy.stats import mode
    from sklearn.neighbors import NearestNeighbors

    labelled = np.flatnonzero(codes >= 0)
    if len(labelled) < 2:
        return float("nan")
    search = NearestNeighbors(n_neighbors=min(10, len(labelled) - 1)).fit(X[labelled])
    neighbours = search.kneighbors(return_distance=False)  # (n, 10), never the point itself
    votes = mode(codes[labelled][neighbours], axis=1).mode
    return float(np.mean(votes == codes[labelled]))


def _parameters(estimator: Any) -> str:
    values = estimator.get_params()
    return ", ".join(f"{name}={values[name]!r}" for name in _defaults(type(estimator)))


def _title(args: argparse.Namespace, table: Any, estimator: Any) -> str:
    shown = {name: getattr(estimator, name) for name in ("time", "normalization", "epsilon")}
    words = ", ".join(f"{name} {value}" for name, value in shown.items())
    return f"{table.source}: {args.method}, {words}"


def _epsilon_text(epsilon: Any) -> str:
    values = np.atleast_1d(np.asarray(epsilon))
    if values.dtype.kind in "US":
        return str(values[0])
    if len(values) == 1:
        return f"{values[0]:.6g}"
    return f"median {np.median(values):.4g}, from {values.min():.4g} to {values.max():.4g}"


def _score(args: argparse.Namespace) -> None:
    table = _read(args)
    F = _read_embedding(args, table)
    given = {name: value for name, value in vars(args).items() if name != "random_state"}
    ready = given.get("affinity") == "precomputed"
    make: Callable[..., Any] = hs.Diffusion.from_affinity if ready else hs.Diffusion.from_points
    to_diffusion = {name: value for name, value in given.items() if _has(make, name)}
    to_distance = {name: given[name] for name in ("time", "filter") if name in given}
    n = table.values.shape[0]
    pairs = _choose_pairs(n, args.pairs, args.random_state)
    A = make(table.values, **to_diffusion)
    result = hs.distortion(F, hs.diffusion_distance(A, pairs=pairs, **to_distance), pairs=pairs)
    facts = {
        "log_L": float(result.log_L),
        "expansion": float(result.expansion),
        "contraction": float(result.contraction),
        "quantiles": {str(level): float(ratio) for level, ratio in result.quantiles.items()},
        "worst_pairs": {end: ends.tolist() for end, ends in result.worst_pairs.items()},
        "pairs": int(result.n_pairs),
        "points": n if pairs is None else len(np.unique(pairs)),
        "all_pairs": pairs is None,
        "random_state": args.random_state,
    }
    _print_json(facts) if args.json else _print_score(facts, n)


def _read_embedding(args: argparse.Namespace, table: Any) -> Any:
    """Read the coordinates (n, k): the columns of the file that are not columns of the input."""
    key = args.embedding_key
    if key is None and Path(args.embedding).suffix.lower() == ".h5ad":
        key = _defaults(io.write_table)["key"]
    embedding = io.read_table(args.embedding, key=key)
    kept = [j for j, name in enumerate(embedding.columns) if name not in table.extra]
    F, n = embedding.values[:, kept], table.values.shape[0]
    if F.shape[0] != n:
        raise ValueError(
            f"{args.embedding} has {F.shape[0]:,} rows but {args.input} has {n:,}; pass the "
            "embedding of these points."
        )
    return F.toarray() if hasattr(F, "toarray") else np.asarray(F)


def _choose_pairs(n: int, wanted: int | None, seed: int) -> tuple[Any, Any] | None:
    """Return the pairs (i, j) to compare, None for all of them."""
    if wanted is None and n <= ALL_PAIRS_UP_TO:
        return None
    if wanted is not None and wanted >= n * (n - 1) // 2:
        return None
    # Few points with all their pairs: the cost is one column of f(A) for each point.
    points = SAMPLE if wanted is None else int(np.ceil((1 + np.sqrt(1 + 8 * wanted)) / 2))
    rng = np.random.default_rng(seed)
    sample = np.sort(rng.choice(n, points, replace=False))
    i, j = np.triu_indices(points, 1)
    kept = np.sort(rng.permutation(len(i))[:wanted])
    return sample[i[kept]], sample[j[kept]]


def _print_score(facts: dict[str, Any], n: int) -> None:
    among = f"all {n:,} points"
    if not facts["all_pairs"]:
        among = f"{facts['points']:,} random of {n:,} points (seed {facts['random_state']})"
    quantiles = ", ".join(f"{level}: {ratio:.3g}" for level, ratio in facts["quantiles"].items())
    stretched, shrunk = (facts["worst_pairs"][end][0] for end in ("expansion", "contraction"))
    _print_lines(
        {
            "pairs": f"{facts['pairs']:,} among {among}",
            "log L": f"{facts['log_L']:.4g}",
            "expansion": f"{facts['expansion']:.4g} (points {stretched[0]} and {stretched[1]})",
            "contraction": f"{facts['contraction']:.4g} (points {shrunk[0]} and {shrunk[1]})",
            "quantiles": f"{quantiles} (of the ratio of distances, over its median)",
        }
    )


def _ksum(args: argparse.Namespace) -> None:
    if args.plot is not None:
        _check_output(args, args.plot, plot.SUFFIXES)
        plot.check_picture(args.plot)
    result = hs.ksum(_read(args).values, rng=args.random_state)
    if args.plot is not None:
        plot.ksum_curve(result, path=args.plot)
    if args.json:
        _print_json(
            {
                "epsilon": float(result.epsilon),
                "dimension": float(result.dimension),
                "epsilons": [float(epsilon) for epsilon in result.epsilons],
                "slopes": [float(slope) for slope in result.slopes],
            }
        )
        return
    lines = {"epsilon": f"{result.epsilon:.6g}", "dimension": f"{result.dimension:.3g}"}
    _print_lines(lines if args.plot is None else {**lines, "written": str(args.plot)})
    print(f"\n{'epsilon':>12}  slope")
    best = int(np.argmax(result.slopes))
    for j in range(max(best - 8, best % 2), min(best + 9, len(result.slopes)), 2):
        mark = "  <- largest" if j == best else ""
        print(f"{result.epsilons[j]:12.5g}  {result.slopes[j]:5.3f}{mark}")


def _datasets(args: argparse.Namespace) -> None:
    if (args.name is None) != (args.output is None):
        args.usage_error("pass a name together with -o FILE, or neither to list the sets")
    if args.name is None:
        for name, make in datasets.DATASETS.items():
            n, d = io.read_table(name).values.shape
            doc = (make.__doc__ or "").strip().splitlines()[0]
            print(f"{name:22} {n:5,} points, {d:2} features  {doc}")
        return
    if args.name not in datasets.DATASETS:
        args.usage_error(f"no set {args.name!r}; choose {', '.join(datasets.DATASETS)}")
    _check_output(args, args.output, io.SUFFIXES)
    table = io.read_table(args.name)
    io.write_table(args.output, table.values, table.columns, table, force=args.force)
    _print_lines({"written": f"{args.output}: {table.values.shape[0]:,} points of {args.name}"})


# Files and text


def _read(args: argparse.Namespace) -> Any:
    logger.info("reading %s", args.input)
    return io.read_table(args.input, label=args.label, ids=args.id, key=args.key)


def _check_output(args: argparse.Namespace, path: Path, suffixes: Sequence[str]) -> None:
    """Raise now for what would keep a finished result from being written."""
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        args.usage_error(f"{path} has no known suffix; choose {', '.join(suffixes)}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file.")
    if not os.access(path.parent, os.W_OK):
        raise OSError(f"{path.parent} is missing or not writable; choose another folder.")
    if Path(getattr(args, "input", "")).exists() and path.exists() and path.samefile(args.input):
        raise ValueError(f"{path} is also the input; choose another name.")
    if path.exists() and not args.force:
        raise FileExistsError(f"{path} exists; pass --force to replace it or choose another name.")
    module = WRITERS.get(suffix)
    if module is not None and importlib.util.find_spec(module) is None:
        raise ImportError(f'{suffix} files need {module}; pip install "heatsketch[io]"')


def _print_lines(lines: dict[str, str]) -> None:
    for name, text in lines.items():
        print(f"{name:<12} {text}")


def _print_json(facts: dict[str, Any]) -> None:
    print(json.dumps(_without_infinities(facts), indent=2, allow_nan=False))


def _without_infinities(value: Any) -> Any:
    """Replace NaN and infinities, which JSON lacks, by null."""
    if isinstance(value, dict):
        return {key: _without_infinities(inner) for key, inner in value.items()}
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
