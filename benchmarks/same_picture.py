"""Is the picture the same for every seed, order of rows, number of threads, and processor?

Run: python benchmarks/same_picture.py [--mnist FOLDER] [--small]

Each picture is drawn in a process of its own, and compared with that of the defaults: the largest
and the median distance of a point's two places, in the diagonal of the picture. Other
processors are imitated: OpenBLAS uses the kernels of another one (OPENBLAS_CORETYPE), and Numba
compiles for a processor without its vector instructions (NUMBA_CPU_NAME). This shows what other
orders of sums do, not what another system does. Peers draw with a fixed seed.
"""

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import _harness as harness
import numpy as np
from _data import draw

SETS = ("digits", "wine", "cells", "text", "roll", "tree", "mnist:5000")
PLAIN = {"OPENBLAS_CORETYPE": "", "NUMBA_CPU_NAME": "", "OMP_NUM_THREADS": ""}
OLD = {"OPENBLAS_CORETYPE": "Nehalem", "NUMBA_CPU_NAME": "generic"}
CHANGES = {  # name -> environment, seed, order of rows
    "another seed": ({}, 1, False),
    "another order of rows": ({}, 0, True),
    "one thread": ({"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}, 0, False),
    "kernels of AVX2": ({"OPENBLAS_CORETYPE": "Haswell", "NUMBA_CPU_NAME": "haswell"}, 0, False),
    "kernels of 2008": (OLD, 0, False),
}


def heatsketch(X, seed):
    import heatsketch as hs

    return hs.HeatEmbedding(random_state=seed).fit_transform(X)


def umap(X, seed):
    from umap import UMAP

    return UMAP(random_state=seed).fit_transform(X)


def tsne(X, seed):
    from openTSNE import TSNE

    return np.asarray(TSNE(random_state=seed, n_jobs=2).fit(X))


METHODS = {"heatsketch": heatsketch, "UMAP": umap, "t-SNE": tsne}
DENSE = {"UMAP", "t-SNE"}  # openTSNE reads no sparse rows


def main_of_process(source, target):
    method, X, seed = pickle.loads(Path(source).read_bytes())
    Path(target).write_bytes(pickle.dumps(np.asarray(METHODS[method](X, seed), float)))


def picture(method, X, seed, environment):
    """Return the picture that a new process draws under an environment."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in"), Path(folder, "out")
        source.write_bytes(pickle.dumps((method, X, seed)))
        known = {name: value for name, value in (PLAIN | environment).items() if value}
        kept = {name: value for name, value in os.environ.items() if name not in PLAIN}
        command = [sys.executable, __file__, "--draw", str(source), str(target)]
        subprocess.run(command, env=kept | known, check=True, capture_output=True)
        return pickle.loads(target.read_bytes())


def main():
    options = harness.parser(__doc__)
    options.add_argument("--mnist", help="folder with the test images of MNIST as IDX files")
    options.add_argument("--draw", nargs=2, help="used by the script itself")
    arguments = options.parse_args()
    if arguments.draw:
        main_of_process(*arguments.draw)
        return
    rows, table = [], ""
    for name in SETS[:1] if arguments.small else SETS:
        try:
            X = draw(name, arguments.mnist).X
        except ImportError as error:
            harness.say(f"{name}: left out, {error}")
            continue
        order = np.random.default_rng(0).permutation(X.shape[0])
        for method in harness.chosen(METHODS, arguments.only):
            points = X.toarray() if method in DENSE and hasattr(X, "toarray") else X
            usual = picture(method, points, 0, {})
            size = np.linalg.norm(np.ptp(usual, axis=0))
            for change, (environment, seed, turned) in CHANGES.items():
                if method in DENSE and change == "another seed":
                    continue
                Y = picture(method, points[order] if turned else points, seed, environment)
                moved = np.linalg.norm(Y - (usual[order] if turned else usual), axis=1) / size
                rows.append(
                    {"data": name, "method": method, "change": change}
                    | {"largest": float(moved.max()), "median": float(np.median(moved))}
                )
                harness.say(f"{name} {method} {change}: {moved.max():.2g}")
        table = harness.save("same_picture", rows, arguments, (*harness.PACKAGES, "openTSNE"))
    print(table)


if __name__ == "__main__":
    main()
