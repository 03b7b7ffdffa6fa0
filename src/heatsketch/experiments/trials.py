"""A trial: its points and random matrices, its embeddings, and log L of each."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.spatial.distance import pdist
from threadpoolctl import threadpool_limits

import heatsketch as hs
from heatsketch._array import random_block
from heatsketch._checks import logger
from heatsketch._typing import Array
from heatsketch.datasets import DATASETS
from heatsketch.experiments import methods
from heatsketch.experiments.figures import Setting
from heatsketch.spectral.eigenpairs import Spectrum

_BISTOCHASTIC_METHODS = ("DMB", "GPB", "GPSBB", "ours", "CMDS", "SMACOF")
_MATRIX_KIND = {"GPS": "gaussian", "GPB": "gaussian", "GPSBS": "rademacher", "GPSBB": "rademacher"}
_POINTS, _MATRICES, _DIRECTIONS = range(3)  # purposes of random numbers


@dataclass(frozen=True)
class Task:
    """Some methods of one trial, which are run together."""

    setting: Setting
    seed: int
    trial: int
    methods: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """The results of a task: for each method, log L for every value of the setting's axis."""

    task: Task
    log_L: dict[str, list[float]]
    seconds: float


class Sample:
    """The points of a trial and what its methods share, each computed once when it is needed.

    Everything is drawn from SeedSequence(seed, spawn_key=(setting.number, trial, purpose)), so it
    depends neither on other trials nor on which methods are run.
    """

    def __init__(self, setting: Setting, seed: int, trial: int) -> None:
        self.setting, self._seed, self._trial = setting, seed, trial
        self.X, self.coordinates = DATASETS[setting.points](setting.n, rng=self._rng(_POINTS))
        self.spectrum = cache(self._spectrum)
        self.distance = cache(self._distance)
        self.G = cache(self._matrix)

    def embedding(self, method: str, p: int, k: int) -> Array:
        """Embed the points (n, k)."""
        s = self.spectrum(normalization(method))
        if method in ("DMS", "DMB"):
            return methods.diffusion_map(s, p, k)
        if method in _MATRIX_KIND:
            return methods.gaussian_process(s, p, self.G(_MATRIX_KIND[method])[:, :k])
        F = methods.diffusion_factor(s, p)
        if method == "CMDS":
            return methods.classical_mds(F, k)
        if method == "SMACOF":
            return methods.smacof(F, k)
        return methods.learned(F, k, self._rng(_DIRECTIONS, p, k))

    def log_L(self, method: str, p: int, k: int) -> float:
        """Measure an embedding."""
        D = self.distance(normalization(method), p)
        return hs.distortion(self.embedding(method, p, k), D).log_L

    def _rng(self, *purpose: int) -> np.random.Generator:
        key = (self.setting.number, self._trial, *purpose)
        return np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=key))

    def _spectrum(self, form: str) -> Spectrum:
        return methods.spectrum(self.X, self.setting.epsilon, form)

    def _distance(self, form: str, p: int) -> Array:
        if self.setting.distance == "euclidean":
            return pdist(self.X)
        return pdist(methods.diffusion_factor(self.spectrum(form), p))

    def _matrix(self, kind: str) -> Array:
        purpose = (_MATRICES, int(kind == "rademacher"))
        return random_block(self.setting.n, max(self.setting.sizes), kind, self._rng(*purpose))


def normalization(method: str) -> str:
    """Return the normalisation of the kernel of a method."""
    return "bistochastic" if method in _BISTOCHASTIC_METHODS else "symmetric"


def run(task: Task) -> Result:
    """Run the methods of a task."""
    start, setting = time.perf_counter(), task.setting
    cells = [(p, k) for p in setting.powers for k in setting.sizes]
    with one_thread():
        sample = Sample(setting, task.seed, task.trial)
        log_L = {m: [sample.log_L(m, p, k) for p, k in cells] for m in task.methods}
    return Result(task, log_L, time.perf_counter() - start)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS to one thread, so that results do not depend on the jobs, and log nothing."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        logger.setLevel(level)
