"""A program that enters every compiled loop, and prints what had to be compiled for it.

Run: python every_loop.py FOLDER
"""

import importlib
import pkgutil
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from numba.core import event
from numba.core.dispatcher import Dispatcher

import heatsketch as hs
from heatsketch.classical import Isomap
from heatsketch.cli import main
from problems.limits import set_limits


class Listener(event.Listener):
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        print("compiled", function.__module__, function.__qualname__)

    def on_end(self, event):
        pass


def run(folder):
    """Take the default ways from a file to files, and the others on which there are loops."""
    X = np.random.default_rng(0).standard_normal((600, 10)).cumsum(axis=0)
    points, model, picture = (str(folder / name) for name in ("X.npy", "model.npz", "Y.npy"))
    np.save(points, X)
    always = ["-q", "--force", "-o"]
    assert main(["embed", points, *always, picture, "--save-model", model]) == 0
    sketch = ["--method", "heat-sketch", "-o", str(folder / "F.npy")]
    assert main(["embed", points, "-q", "--force", *sketch]) == 0
    assert main(["report", points, *always, str(folder / "page.html")]) == 0
    assert main(["transform", model, points, *always, str(folder / "new.npy")]) == 0
    hs.audit(X, np.load(picture)).describe()
    for dtype in (np.float32, np.float64):
        embedding = hs.HeatEmbedding(3).fit(X.astype(dtype))
        embedding.transform(X[:50] + 0.1)
        hs.HeatSketch(8, affinity="dense").fit(X.astype(dtype))
    hs.markers(X, X[:, 0] > 0)
    Isomap().fit(X).transform(X[:5] + 0.1)
    hs.MixtureDiffusion(random_state=0).fit(X[:, :3])


def left_out():
    """Return the names of the loops that were not entered."""
    modules = [m.name for m in pkgutil.walk_packages(hs.__path__, "heatsketch.")]
    loops = [importlib.import_module(name) for name in modules if name.endswith("_loops")]
    every = [value for module in loops for value in vars(module).values()]
    return [f.__name__ for f in every if isinstance(f, Dispatcher) and not f.signatures]


if __name__ == "__main__":
    event.register("numba:compile", Listener())
    warnings.simplefilter("ignore")
    # The ways of many points.
    set_limits(pytest.MonkeyPatch(), compiled_from=1, exact_points=500, few_steps=1)
    run(Path(sys.argv[1]))
    print("left out", left_out())
