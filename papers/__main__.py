"""Run the experiments of the papers: `python -m papers NAME` from the root of a clone."""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

from papers.notes.figures import NOTES, run_notes
from papers.output import Experiment
from papers.representation.run import EXAMPLES
from papers.sketching.experiments import EXPERIMENTS
from papers.sketching.figures import FIGURES, methods_of
from papers.sketching.run import run_figure

RUNS: dict[str, Experiment] = EXPERIMENTS | EXAMPLES  # they need no more than a folder and a seed


def main(arguments: list[str] | None = None) -> None:
    """Run one experiment, or all, and print the main numbers; without a name, list them."""
    described = FIGURES | RUNS | NOTES
    parser = argparse.ArgumentParser("python -m papers", description=__doc__)
    asked = "without it, the names and how long each takes on two cores"
    parser.add_argument("name", choices=(*described, "all"), metavar="NAME", nargs="?", help=asked)
    parser.add_argument("-o", "--output", type=Path, default=Path("figures"), metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    of_trials = "trials of a figure of Sketching the heat kernel (default: the paper's)"
    parser.add_argument("--trials", type=int, metavar="N", help=of_trials)
    some = "methods of such a figure, joined by commas, as in DMS,GPS,ours (default: all it has)"
    parser.add_argument("--methods", type=lambda names: names.split(","), metavar="A,B", help=some)
    parser.add_argument(
        "--jobs", type=int, default=-1, metavar="J", help="processes (default: all)"
    )
    idx = "folder of the IDX files of MNIST, for notes-5 and notes-crowding (default: download it)"
    parser.add_argument("--mnist", type=Path, metavar="FOLDER", help=idx)
    args = parser.parse_args(arguments)
    if args.name is None:
        for name, item in described.items():
            print(f"{name:<16} {item.minutes:>6g} min  {item.title}")
        return
    if args.methods is not None:
        if args.name not in FIGURES:
            parser.error(f"--methods is for one of the figures {', '.join(FIGURES)}.")
        try:
            methods_of(args.name, args.methods)
        except ValueError as error:
            parser.error(f"--methods: {error}")
    args.output.mkdir(parents=True, exist_ok=True)
    for name in described if args.name == "all" else [args.name]:
        table = args.output / (f"figure-{name}.csv" if name in FIGURES else f"{name}.csv")
        if args.name == "all" and table.exists():
            continue
        run: Callable[..., object]
        if name in FIGURES:
            run = partial(
                run_figure, name, trials=args.trials, jobs=args.jobs, methods=args.methods
            )
        elif name in NOTES:
            run = partial(run_notes, name, mnist=args.mnist)
        else:
            run = RUNS[name].run
        run(args.output, seed=args.seed)
        print(f"{table}:\n{table.read_text(encoding='utf-8')}")


if __name__ == "__main__":
    main()
