"""What is imported, and compiled, before the first result: no more than it needs."""

import ast
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.comparison.run import ESTIMATORS
from problems.clouds import cloud

HEAVY = ("numpy", "scipy", "sklearn", "numba", "matplotlib", "pandas", "joblib")


def run(*arguments, **environment):
    """Return what a new interpreter prints."""
    command, env = [sys.executable, *arguments], os.environ | environment
    return subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout


def test_nothing_heavy_is_imported_before_it_is_used():
    printed = run(
        "-c",
        "import heatsketch; dir(heatsketch), heatsketch.__version__\n"
        "from heatsketch.cli import main\n"
        "codes = [main([word]) for word in ('--version', '--help', 'no-such-command')]\n"
        "assert codes == [0, 0, 2]\n"
        "import sys\nprint()\nprint(*sys.modules)",
    )
    found = set(printed.splitlines()[-1].split())
    assert {name for name in found if name.split(".")[0] in HEAVY} == set()
    light = {"heatsketch.cli", "heatsketch.cli.arguments", "heatsketch.cli.printing"}
    light |= {"heatsketch._version", "heatsketch._words", "heatsketch.io", "heatsketch.io.files"}
    assert {name for name in found if name.startswith("heatsketch.")} <= light


def test_every_public_name_is_found_and_nothing_else_is_listed():
    assert dir(hs) == hs.__all__ == sorted(set(hs.__all__))
    assert {"plot", "mixture", "HeatEmbedding"} <= set(dir(hs))
    assert {"Any", "importlib", "lazy_loader"} & set(dir(hs)) == set()
    scope = {}
    exec("from heatsketch import *", scope)
    assert set(hs.__all__) <= set(scope)
    stub = Path(hs.__file__).with_suffix(".pyi").read_text(encoding="utf-8")  # for type checkers
    assert sorted(ast.literal_eval(stub.partition("__all__ = ")[2])) == hs.__all__


def test_pickles_are_found_and_small_data_wait_for_no_compiler(tmp_path):
    """Where nothing is imported yet: modules, then classes of pickles, then commands."""
    points = str(tmp_path / "points.npy")
    np.save(points, cloud(300, 10))
    code = (
        "import heatsketch as hs, pickle\n"
        "print(hs.plot.scatter.__name__, hs.io.read_table.__name__)\n"
        f"print(pickle.loads({pickle.dumps([hs.HeatSketch(5), hs.Power(3), hs.ksum])}))\n"
        "from heatsketch.cli import main\n"
        "for method in ('heat-embedding', 'diffusion-map', 'laplacian-eigenmap'):\n"
        f"    options = ['-o', {str(tmp_path)!r} + f'/{{method}}.npy', '--method', method, '-q']\n"
        f"    assert main(['embed', {points!r}, *options]) == 0\n"
    )
    printed = run("-c", code, NUMBA_CACHE_DIR=str(tmp_path / "compiled"))
    assert printed.startswith("scatter read_table\n[HeatSketch(n_components=5), Power(")
    assert not list(tmp_path.glob("compiled/**/*.nb*"))


@pytest.mark.slow
def test_what_one_process_compiles_no_other_compiles_again(tmp_path):
    """The default ways, in two processes; between them the cache on disk stays as it is."""
    cache = tmp_path / "compiled"
    tests = Path(__file__).parent
    paths = os.pathsep.join([str(tests), os.environ.get("PYTHONPATH", "")])
    environment = {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": paths}
    printed, files = [], []
    for _ in range(2):
        program = str(tests / "problems" / "every_loop.py")
        printed.append(run(program, str(tmp_path), **environment))
        files.append({p.name: p.stat().st_mtime_ns for p in cache.rglob("*") if p.is_file()})
    assert re.search(r"compiled heatsketch.core.loops \S*repulsion\n", printed[0])
    assert "left out []" in printed[0]
    assert "compiled" not in printed[1]
    assert files[0] == files[1]


@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)
def test_notebooks_show_estimators_as_those_of_scikit_learn(make):
    """Also no link, which would lead to the pages of scikit-learn."""
    fitted = hs.DiffusionMap(time=3).fit([[0.0], [1.0], [3.0]])._repr_html_()
    assert "Not fitted" not in fitted
    assert "Fitted" in fitted
    html = make()._repr_html_()
    assert make.__name__ in html
    assert "Not fitted" in html
    assert "href=" not in html


@pytest.mark.slow
def test_two_threads_may_fit_at_once_where_nothing_is_compiled(tmp_path):
    """As in a server with two callers: the bits are those of one fit after the other."""
    code = (
        "import numpy as np, heatsketch as hs\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "draws = [np.random.default_rng(i).normal(size=(700, 5)) for i in range(2)]\n"
        "fit = lambda X: hs.HeatEmbedding(random_state=0).fit_transform(X)\n"
        "with ThreadPoolExecutor(2) as pool:\n"
        "    at_once = list(pool.map(fit, draws))\n"
        "print(all(np.array_equal(Y, fit(X)) for X, Y in zip(draws, at_once)))\n"
    )
    assert run("-c", code, NUMBA_CACHE_DIR=str(tmp_path)) == "True\n"
