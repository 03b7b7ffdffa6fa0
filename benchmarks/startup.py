"""How long do importing heatsketch and its first command take?

Run: python benchmarks/startup.py [--repeats 5] [--small]

"import": a new interpreter imports NumPy, SciPy and scikit-learn (the parts of it that heatsketch
uses), or heatsketch with an estimator (names are imported when they are first used); the second
less the first is what heatsketch adds. "first" and "second"
command: `heatsketch embed digits`, with no compiled code on disk at first (an empty folder as
NUMBA_CACHE_DIR), then with what the first run left there. Seconds, medians.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import _harness as harness

BASE = (
    "import numpy, scipy.sparse.csgraph, scipy.linalg, scipy.spatial.distance, sklearn.neighbors, "
    "sklearn.base, sklearn.utils.validation"
)


def seconds(command, environment=None):
    """Return the wall time of a command that must succeed."""
    return harness.timed(
        lambda: subprocess.run(
            command, check=True, capture_output=True, env=os.environ | (environment or {})
        )
    )[0]


def embed_digits(folder, cache):
    """Return the time of one `heatsketch embed digits` with the compiled code of a folder."""
    output = str(folder / "digits.npy")
    command = [sys.executable, "-m", "heatsketch", "embed", "digits", "-o", output, "--force"]
    return seconds(command, {"NUMBA_CACHE_DIR": str(cache)})


def commands():
    """Return the times of the first and the second command."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [embed_digits(folder, folder / "cache") for _ in range(2)]


def main():
    arguments = harness.parser(__doc__).parse_args()
    repeats = 1 if arguments.small else arguments.repeats
    found = {"NumPy, SciPy, scikit-learn": [], "heatsketch": []}
    first_and_second = []
    for _ in range(repeats):
        found["NumPy, SciPy, scikit-learn"].append(seconds([sys.executable, "-c", BASE]))
        found["heatsketch"].append(
            seconds([sys.executable, "-c", "import heatsketch; heatsketch.HeatEmbedding"])
        )
        first_and_second.append(commands())
    first, second = zip(*first_and_second, strict=True)
    base, ours = (statistics.median(values) for values in found.values())
    rows = [
        {"what": "import NumPy, SciPy, scikit-learn", "seconds": base},
        {"what": "import heatsketch, HeatEmbedding", "seconds": ours},
        {"what": "added by heatsketch", "seconds": ours - base},
        {"what": "heatsketch embed digits, nothing compiled", "seconds": statistics.median(first)},
        {"what": "the same again", "seconds": statistics.median(second)},
    ]
    print(harness.save("startup", rows, arguments))


if __name__ == "__main__":
    main()
