"""Segments of an image, the motivating example of *Diffusion representation*, §1.

A pixel is a point in five dimensions, position and colour. A mixture is fitted to some pixels, and
`CholeskyMap` maps all pixels, each by itself. The other way is that of the text's reference [2]: a
diffusion map of a sample of the pixels, and Nyström extension to the others.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_image
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

import heatsketch as hs
from papers.output import figure_and_axes, random, save, write_rows
from papers.representation.rivals import sampled_map
from papers.representation.stationary import IMAGE

PHOTOGRAPH, SHRINK = "flower.jpg", 2  # ships with scikit-learn; the mean of 2 × 2 pixels is one
POSITION = 0.5  # the width of the image, where colours are from 0 to 1
EPSILONS = (0.02, 0.2)  # steps √(ε/2) of 0.1 and 0.3
COMPONENTS, SAMPLE = 8, 2000  # of the mixture; pixels of a fit
TOLERANCE, MAX_FEATURES = 0.02, 200  # of the largest distance; coordinates
SEGMENTS, CLUSTERED = 5, 4000  # pixels whose coordinates k-means sees
COMPARED = 200  # pixels, all pairs of which are compared
METHODS = ("mixture", "sampled")


class SegmentRow(NamedTuple):
    """One way to map all pixels, over two draws of the pixels of its fit.

    Differences of distances are medians over pairs of pixels, as shares of the largest distance.

    Attributes
    ----------
    epsilon : float
        In squared units of colours.
    method : str
        "mixture": closed form. "sampled": a diffusion map of 2,000 pixels, and Nyström extension.
    coordinates : int
        Number of coordinates, chosen by the tolerance of the first way.
    agreement, difference : float
        Adjusted Rand index of the segments by both ways, and difference of their distances; means
        over the draws.
    repeated_agreement, repeated_difference : float
        The same of two draws of this way.
    fit_seconds, map_seconds : float
        Processor time of the fit, and of mapping all pixels; means over the draws.
    """

    epsilon: float
    method: str
    coordinates: int
    agreement: float
    difference: float
    repeated_agreement: float
    repeated_difference: float
    fit_seconds: float
    map_seconds: float


class Segmented(NamedTuple):
    """The segments of all pixels by one way, and its distances."""

    labels: np.ndarray  # (n,)
    distances: np.ndarray  # of all pairs of the pixels that are compared
    coordinates: int
    fit_seconds: float
    map_seconds: float


def segmentation_example(
    seed: int, *, shrink: int = SHRINK, sample: int = SAMPLE, clustered: int = CLUSTERED
) -> tuple[list[SegmentRow], np.ndarray, dict[tuple[float, str], np.ndarray]]:
    """Return rows, the image, and the segments of the first draw by ε and way, (h, w) each."""
    image = photograph(shrink)
    pixels = features_of(image)
    rows, shown = [], {}
    for number, epsilon in enumerate(EPSILONS):
        compared = some(pixels, COMPARED, random(seed, IMAGE, number))
        drawn = [
            _segmented(pixels, compared, epsilon, (sample, clustered), rng)
            for rng in (random(seed, IMAGE, number, draw) for draw in range(2))
        ]
        ways = np.mean([_alike(*both) for both in drawn], axis=0).tolist()
        for method, own in zip(METHODS, zip(*drawn, strict=True), strict=True):
            seconds = np.mean([(way.fit_seconds, way.map_seconds) for way in own], axis=0).tolist()
            count = own[0].coordinates
            rows.append(SegmentRow(epsilon, method, count, *ways, *_alike(*own), *seconds))
            shown[epsilon, method] = own[0].labels.reshape(image.shape[:2])
    return rows, image, shown


def _alike(a: Segmented, b: Segmented) -> tuple[float, float]:
    """Return the adjusted Rand index of segments, and the median difference of distances."""
    off = np.median(np.abs(a.distances - b.distances)) / a.distances.max()
    return float(adjusted_rand_score(a.labels, b.labels)), float(off)


def some(pixels: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n different pixels."""
    return pixels[rng.choice(len(pixels), n, replace=False)]


def photograph(shrink: int) -> np.ndarray:
    """Return the photograph, shrunk, with colours from 0 to 1, (h, w, 3)."""
    image = load_sample_image(PHOTOGRAPH) / 255
    h, w = (size // shrink for size in image.shape[:2])
    cut = image[: h * shrink, : w * shrink]
    return cut.reshape(h, shrink, w, shrink, 3).mean(axis=(1, 3))


def features_of(image: np.ndarray) -> np.ndarray:
    """Return position and colour of all pixels, (h w, 5)."""
    h, w, _ = image.shape
    places = np.stack(np.meshgrid(np.arange(h), np.arange(w), indexing="ij"), axis=-1)
    return np.concatenate([places * (POSITION / w), image], axis=-1).reshape(-1, 5)


def _segmented(
    pixels: np.ndarray,
    compared: np.ndarray,
    epsilon: float,
    sizes: tuple[int, int],
    rng: np.random.Generator,
) -> list[Segmented]:
    """Return the segments by both ways, fitted to the same pixels, whose numbers are given."""
    sample, count = sizes
    r, y, clustered = (some(pixels, n, rng) for n in (sample, sample, count))
    state = int(rng.integers(2**31))
    cholesky, seconds = timed(lambda: mixture_map(r, epsilon, state))
    length = cholesky.n_features
    extended, other_seconds = timed(lambda: sampled_map(r, y, epsilon, length, rng))
    found = []
    for transform, fit_seconds in ((cholesky.transform, seconds), (extended, other_seconds)):
        coordinates, map_seconds = timed(partial(transform, pixels))
        clusters = KMeans(SEGMENTS, n_init=5, random_state=state).fit(transform(clustered))
        labels, distances = clusters.predict(coordinates), pdist(transform(compared))
        found.append(Segmented(labels, distances, length, fit_seconds, map_seconds))
    return found


def mixture_map(r: np.ndarray, epsilon: float, state: int) -> hs.mixture.CholeskyMap:
    """Return the map of a mixture that is fitted to pixels."""
    mixture = GaussianMixture(COMPONENTS, random_state=state).fit(r)
    kernel = hs.MixtureKernel.from_sklearn(mixture, epsilon)
    largest = np.sqrt(kernel.squared_distance(r[:COMPARED], r[:COMPARED]).max())
    return hs.mixture.CholeskyMap(MAX_FEATURES).fit(kernel, TOLERANCE * float(largest), r)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and the processor time that it took, in seconds."""
    started = time.process_time()
    result = work()
    return result, time.process_time() - started


def run_segmentation(folder: Path, seed: int = 0, **sizes: int) -> list[SegmentRow]:
    """Write mgc-image.csv and .png, and return the rows."""
    with threadpool_limits(1):  # the sums of k-means depend on the order of its threads
        rows, image, shown = segmentation_example(seed, **sizes)
    write_rows(folder / "mgc-image.csv", SegmentRow._fields, rows)
    draw_segments(rows, image, shown, folder / "mgc-image.png")
    return rows


def draw_segments(
    rows: list[SegmentRow],
    image: np.ndarray,
    shown: dict[tuple[float, str], np.ndarray],
    path: Path,
) -> None:
    """Draw the image, and segments in their mean colours: by ε and by way."""
    drawing, axes = figure_and_axes(10.5, 5.2, (len(METHODS), 1 + len(EPSILONS)))
    axes[0, 0].imshow(image)
    axes[0, 0].set_title(f"{image.shape[0] * image.shape[1]:,} pixels", fontsize=9)
    for row in rows:
        ax = axes[METHODS.index(row.method), 1 + EPSILONS.index(row.epsilon)]
        labels = shown[row.epsilon, row.method]
        means = np.array([image[labels == label].mean(axis=0) for label in range(SEGMENTS)])
        ax.imshow(means[labels])
        ax.set_title(
            f"{row.method}, ε = {row.epsilon:g}, {row.coordinates} coordinates", fontsize=9
        )
    for ax in axes.ravel():
        ax.axis("off")
    save(drawing, f"{SEGMENTS} segments in diffusion coordinates", path)
