"""Settings of all tests."""

import gc
import math
import os
import warnings
from dataclasses import replace
from functools import partial
from importlib.util import find_spec

import pytest
from hypothesis import settings

from problems.limits import set_limits

# Workers share the cores already: more threads than their share would wait for each other. Set
# before NumPy is imported; processes that tests start inherit it.
if workers := os.environ.get("PYTEST_XDIST_WORKER_COUNT"):
    share = max(1, (os.cpu_count() or 1) // int(workers))
    os.environ.setdefault("OMP_NUM_THREADS", str(share))

# The same examples in every run, so that a failure is about the change at hand: few in the daily
# run, more with HYPOTHESIS_PROFILE=full. Look for new ones with HYPOTHESIS_PROFILE=search.
settings.register_profile("daily", derandomize=True, database=None, deadline=None, max_examples=25)
settings.register_profile("full", settings.get_profile("daily"), max_examples=100)
settings.register_profile("search", derandomize=False, max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "daily"))

# Doctests are looked for in every module, also in one that needs torch.
collect_ignore = [] if find_spec("torch") else ["problems/card.py"]

SEED = int(os.environ.get("HEATSKETCH_SEED", "0"))


if SEED:

    @pytest.fixture(autouse=True)
    def _other_numbers(request, monkeypatch):
        """Draw other random numbers in statistical tests."""
        if request.node.get_closest_marker("statistical") is None:
            return
        import numpy as np  # after the number of threads is set

        usual = np.random.default_rng

        def other(seed=None):
            mine = isinstance(seed, int | np.integer | list | tuple)
            return usual([SEED, *np.atleast_1d(seed).tolist()] if mine else seed)

        monkeypatch.setattr(np.random, "default_rng", other)


@pytest.fixture(autouse=True, scope="session")
def usual_delay():
    """Show no progress, for it depends on time; return the seconds after which users see it."""
    from heatsketch import _threads  # after the number of threads is set

    usual = _threads._DELAY
    with pytest.MonkeyPatch.context() as patch:
        set_limits(patch, show_after=math.inf)
        yield usual


@pytest.fixture
def limits(monkeypatch):
    """Set private limits for one test: `limits(all_pairs=100)`, by names of `problems.limits`."""
    return partial(set_limits, monkeypatch)


@pytest.fixture
def short_search(monkeypatch):
    """Learn maps of heat embeddings from few pairs in a few steps: for tests of something else."""
    from heatsketch.layout.linear import OBJECTIVES  # after the number of threads is set

    for name, pairs in (("most", 500), ("worst", 2_000)):
        short = replace(OBJECTIVES[name], pairs=pairs, penalties=())
        monkeypatch.setitem(OBJECTIVES, name, short)


@pytest.fixture
def device(request):
    """Return a device of torch; of the stand-in for a card, "cuda"."""
    if request.param != "stand-in":
        yield request.param
        return
    import torch

    from problems.card import card

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # of many small steps, in which threads wait for each other
    with card():
        yield "cuda"
    torch.set_num_threads(threads)


@pytest.fixture
def blood():
    """Return scanpy, and the 700 cells that ship inside it with their neighbours."""
    sc = pytest.importorskip("scanpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata = sc.datasets.pbmc68k_reduced()
    sc.pp.neighbors(adata)
    return sc, adata


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Spare the garbage collector what lives to the end: modules and thousands of tests.

    A third of the time of collecting them would go to looking for garbage among them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()
