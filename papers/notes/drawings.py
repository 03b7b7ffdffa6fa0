"""The pictures of the figures of *Linear and nonlinear dimensionality reduction*."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from papers.notes.measures import Walk
from papers.output import COLOURS, figure_and_axes, save

_DOT_STYLE = {"s": 3, "linewidths": 0, "cmap": "viridis"}
_SHOWN_EIGENVALUES = 12
_VIEW_ANGLES = {"elev": 30, "azim": -60}  # degrees
_PANEL_HEIGHT = 2.5  # inches
_ROLL_AXES = [0, 2, 1]  # turn the axis of the roll upwards


def isomap(
    points: Any,
    edges: Any,
    distances: Any,
    way: Any,
    embeddings: dict[str, Any],
    title: str,
    path: Path,
) -> None:
    """Draw the graph, the distances from a point with a shortest path, and the embeddings."""
    count = 2 + len(embeddings)
    drawing, axes = figure_and_axes(2.8 * count, _PANEL_HEIGHT, (1, count))
    X = points[:, _ROLL_AXES]
    ax = _solid(drawing, axes[0, 0], X)
    _edges(ax, X, edges)
    ax.set_title("the graph", fontsize=8)
    ax = _solid(drawing, axes[0, 1], X)
    ax.scatter(*X.T, c=distances, **_DOT_STYLE)
    ax.plot(*X[way].T, color=COLOURS[5], linewidth=2, zorder=10)
    ax.set_title("distances from a point, and a path", fontsize=8)
    for ax, (name, Y) in zip(axes[0, 2:], embeddings.items(), strict=True):
        _edges(ax, Y, edges)
        ax.scatter(*Y.T, c=distances, **_DOT_STYLE, zorder=2)
        ax.plot(*Y[way].T, color=COLOURS[5], linewidth=1.5)
        ax.set_title(f"{name} (scales differ)", fontsize=8)
        ax.tick_params(labelsize=7)
        ax.spines[["top", "right"]].set_visible(False)
    save(drawing, title, path, fontsize=8)


def scatters(panels: Sequence[tuple[str, Any, Any]], title: str, path: Path) -> None:
    """Draw points in space or in the plane, coloured by arc length."""
    drawing, axes = figure_and_axes(2.6 * len(panels), _PANEL_HEIGHT, (1, len(panels)))
    for ax, (name, points, colour) in zip(axes[0], panels, strict=True):
        if points.shape[1] == 3:
            points = points[:, _ROLL_AXES]
            ax = _solid(drawing, ax, points)
        else:
            _plain(ax)
        ax.scatter(*points.T, c=colour, **_DOT_STYLE)
        ax.set_title(name, fontsize=8)
    save(drawing, title, path, fontsize=8)


def digits(panels: Sequence[tuple[str, Any, Any]], title: str, path: Path) -> None:
    """Draw embeddings with a colour for each digit, two in a row."""
    lines = len(panels) // 2
    drawing, axes = figure_and_axes(8.8, 4.2 * lines, (lines, 2))
    import matplotlib

    colours = matplotlib.colormaps["tab10"]
    for ax, (name, points, label) in zip(axes.flat, panels, strict=True):
        for digit in range(10):
            own = points[label == digit]
            ax.scatter(*own.T, s=2, linewidths=0, color=colours(digit), label=str(digit))
        _plain(ax)
        ax.set_aspect("equal", "datalim")
        ax.set_title(name, fontsize=8)
    axes[0, 1].legend(frameon=False, markerscale=4, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save(drawing, title, path, fontsize=8)


def roll(points: Any, order: Any, walks: dict[str, Walk], title: str, path: Path) -> None:
    """Draw a roll, and for each walk P^t, the powers of the eigenvalues, and the map."""
    drawing, axes = figure_and_axes(9.6, _PANEL_HEIGHT * len(walks), (len(walks), 4))
    place = np.argsort(order)
    points = points[:, _ROLL_AXES]
    for (first, matrix, spectrum, last), (name, walk) in zip(axes, walks.items(), strict=True):
        ax = _solid(drawing, first, points)
        ax.scatter(*points.T, c=place, **_DOT_STYLE)
        ax.set_title(name, fontsize=8)
        power = walk.power()[np.ix_(order, order)]
        look = {"cmap": "viridis", "vmin": 0, "vmax": float(np.quantile(power, 0.99))}
        matrix.imshow(power, interpolation="antialiased", rasterized=True, **look)
        matrix.set_title(f"$P^t$, t = {walk.time}, ε = {walk.epsilon:.3g}", fontsize=8)
        matrix.set_xticks([])
        matrix.set_yticks([])
        _spectrum(spectrum, walk)
        _map(drawing, last, walk, place, "viridis")
    save(drawing, title, path, fontsize=8)


def pictures(images: Any, angle: Any, linear: Any, walk: Walk, title: str, path: Path) -> None:
    """Draw images, their principal components, the powers of the eigenvalues, and the map."""
    drawing, axes = figure_and_axes(9.6, _PANEL_HEIGHT, (1, 4))
    ax = axes[0, 0]
    ax.imshow(_mosaic(images), cmap="gray", vmin=0, vmax=255)
    ax.set_title(f"{len(images)} of the images", fontsize=8)
    ax.axis("off")
    ax = _solid(drawing, axes[0, 1]) if linear.shape[1] == 3 else axes[0, 1]
    _loop(ax, linear, angle)
    ax.set_title(f"PCA to {linear.shape[1]}D", fontsize=8)
    if linear.shape[1] == 2:
        _plain(ax)
    _spectrum(axes[0, 2], walk)
    _map(drawing, axes[0, 3], walk, angle, "twilight_shifted")
    save(drawing, title, path, fontsize=8)


def _mosaic(images: np.ndarray) -> np.ndarray:
    """Put images in rows of five, each reduced to about 65 pixels a side."""
    side = round(np.sqrt(images.shape[1]))
    step = max(1, side // 65)
    kept = side // step
    tiles = images.reshape(-1, side, side)[:, : kept * step, : kept * step]
    tiles = tiles.reshape(-1, kept, step, kept, step).mean(axis=(2, 4))
    tiles = np.pad(tiles, ((0, -len(tiles) % 5), (1, 1), (1, 1)), constant_values=255)
    return np.vstack([np.hstack(list(row)) for row in np.split(tiles, len(tiles) // 5)])


def _loop(ax: Any, Y: np.ndarray, angle: np.ndarray) -> None:
    closed = np.append(np.argsort(angle), np.argmin(angle))
    ax.plot(*Y[closed].T, color="#999999", linewidth=0.6)
    ax.scatter(*Y.T, c=angle, **(_DOT_STYLE | {"cmap": "twilight_shifted"}))


def _spectrum(ax: Any, walk: Walk) -> None:
    decay = walk.decay[:_SHOWN_EIGENVALUES]
    ax.plot(np.arange(1, len(decay) + 1), decay, "o-", color=COLOURS[4], markersize=4)
    ax.set_ylim(bottom=0)
    ax.set_xticks(np.arange(2, len(decay) + 1, 2))
    ax.set_xlabel("m", fontsize=8)
    ax.tick_params(labelsize=7)
    ax.set_title(f"$|λ_m|^t$, t = {walk.time}", fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)


def _map(drawing: Any, ax: Any, walk: Walk, colour: np.ndarray, cmap: str) -> None:
    if cmap == "viridis":
        ax = _solid(drawing, ax, walk.embedding)
        ax.scatter(*walk.embedding.T, c=colour, **_DOT_STYLE)
    else:
        ax = _solid(drawing, ax)
        _loop(ax, walk.embedding, colour)
    ax.set_title("diffusion map", fontsize=8)


def _edges(ax: Any, points: np.ndarray, edges: np.ndarray) -> None:
    """Draw edges as one line with gaps."""
    ends = np.full((len(edges), 3, points.shape[1]), np.nan)
    ends[:, :2] = points[edges]
    ax.plot(*ends.reshape(-1, points.shape[1]).T, color="#00000080", linewidth=0.2)


def _solid(drawing: Any, ax: Any, points: np.ndarray | None = None) -> Any:
    """Replace axes by three-dimensional ones, of equal scale for points."""
    place = ax.get_subplotspec()
    ax.remove()
    ax = drawing.add_subplot(place, projection="3d", **_VIEW_ANGLES)
    if points is not None:
        ax.set_box_aspect(np.ptp(points, axis=0), zoom=1.2)
    ax.tick_params(labelsize=0, labelcolor="#ffffff00")
    return ax


def _plain(ax: Any) -> None:
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
