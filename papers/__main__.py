"""Run the experiments of the papers: `python -m papers FIGURE` from the root of a clone."""

import argparse
from pathlib import Path

from papers.notes.figures import NOTES, run_notes
from papers.representation.run import EXAMPLES, run_example
from papers.sketching.figures import FIGURES
from papers.sketching.noise import run_noise
from papers.sketching.run import run_figure


def main(arguments: list[str] | None = None) -> None:
    """Run one figure, or all, and print the main numbers."""
    names = (*FIGURES, "noise", *EXAMPLES, *NOTES)
    parser = argparse.ArgumentParser("python -m papers", description=__doc__)
    parser.add_argument("figure", choices=(*names, "all"), metavar="FIGURE", help=", ".join(names))
    parser.add_argument("-o", "--output", type=Path, default=Path("figures"), metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    of_trials = "trials of a figure of Sketching the heat kernel (default: the paper's)"
    parser.add_argument("--trials", type=int, metavar="N", help=of_trials)
    parser.add_argument(
        "--jobs", type=int, default=-1, metavar="J", help="processes (default: all)"
    )
    idx = "folder of the IDX files of MNIST for notes-5 (default: download it)"
    parser.add_argument("--mnist", type=Path, metavar="FOLDER", help=idx)
    args = parser.parse_args(arguments)
    args.output.mkdir(parents=True, exist_ok=True)
    for name in names if args.figure == "all" else [args.figure]:
        table = args.output / (f"figure-{name}.csv" if name in FIGURES else f"{name}.csv")
        if args.figure == "all" and table.exists():
            continue
        if name in FIGURES:
            run_figure(name, args.output, args.trials, args.seed, args.jobs)
        elif name == "noise":
            run_noise(args.output, args.seed)
        elif name in EXAMPLES:
            run_example(name, args.output, args.seed)
        else:
            run_notes(name, args.output, args.mnist, args.seed)
        print(f"{table}:\n{table.read_text(encoding='utf-8')}")


if __name__ == "__main__":
    main()
