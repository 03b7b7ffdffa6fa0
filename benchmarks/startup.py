"""How long do importing heatsketch, its first command and its first fit take?

Run: python benchmarks/startup.py [--repeats 5] [--small]

"import": a new interpreter imports NumPy, SciPy and scikit-learn (the parts of it that heatsketch
uses), or heatsketch with an estimator (names are imported when they are first used); the second
less the first is what heatsketch adds. "first" and "second"
command: `heatsketch embed digits`, with no compiled code on disk at first (an empty folder as
NUMBA_CACHE_DIR), then with what the first run left there. "first" and "second" fit: of the digits,
in one later process. Seconds, medians.
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
FITS = """
import time, heatsketch as hs
X, _ = hs.datasets.digits()
embedding = hs.HeatEmbedding(random_state=0)  # imported: its time is a row of its own
for _ in range(2):
    started = time.perf_counter()
    embedding.fit(X)
    print(time.perf_counter() - started)
"""


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


def fits(cache):
    """Return the times of two fits in one process, with the compiled code of a folder."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", FITS]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return [float(line) for line in printed.stdout.split()]


def runs():
    """Return the times of the first and the second command, and of two fits in a third process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cache = folder / "cache"
        return [*(embed_digits(folder, cache) for _ in range(2)), *fits(cache)]


def main():
    arguments = harness.parser(__doc__).parse_args()
    repeats = 1 if arguments.small else arguments.repeats
    found = {"NumPy, SciPy, scikit-learn": [], "heatsketch": []}
    measured = []
    for _ in range(repeats):
        found["NumPy, SciPy, scikit-learn"].append(seconds([sys.executable, "-c", BASE]))
        found["heatsketch"].append(
            seconds([sys.executable, "-c", "import heatsketch; heatsketch.HeatEmbedding"])
        )
        measured.append(runs())
    names = (
        "heatsketch embed digits, nothing compiled",
        "the same again",
        "first fit of the digits in a later process",
        "second fit there",
    )
    medians = map(statistics.median, zip(*measured, strict=True))
    base, ours = (statistics.median(values) for values in found.values())
    rows = [
        {"what": "import NumPy, SciPy, scikit-learn", "seconds": base},
        {"what": "import heatsketch, HeatEmbedding", "seconds": ours},
        {"what": "added by heatsketch", "seconds": ours - base},
        *({"what": what, "seconds": each} for what, each in zip(names, medians, strict=True)),
    ]
    print(harness.save("startup", rows, arguments))


if __name__ == "__main__":
    main()
