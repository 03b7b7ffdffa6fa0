"""How many rows travel to a tile at each product: halos of tiles of cells of real data.

Run: python benchmarks/halo.py [--mnist FOLDER] [--points 100000] [--write]

The symmetric graph of the 15 nearest neighbours, vertices in tiles of compact groups of cells (as
`heatsketch.distributed.sketch` makes them), of several sizes. Of each tile: the rows of other tiles
that it needs, over its own (mean, and the largest), and from how many tiles (mean). For comparison
the share if points were in tiles at random. Data: MNIST test digits, raw and in 50 principal
components; the clouds and the curve of benchmarks/streams.py in 50 dimensions; clouds of that kind
in 8; a uniform cube in 3 dimensions, of which the law is known: a tile of m points has a halo of
some 6 m^(2/3) times the layers that neighbours reach.
"""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

import heatsketch as hs
from heatsketch.distributed.cells import (
    TRAINING_PER_CELL,
    cells_of,
    grouped,
    number_of_cells,
    train,
)
from heatsketch.graphs.neighborhoods import neighborhood_graph, symmetric

sys.path.insert(0, str(Path(__file__).parent))
import streams
import whole_graph

TABLE = Path(__file__).parents[1] / "docs" / "benchmarks" / "halo.csv"
SHARES = (4, 16, 64)  # numbers of tiles
FIELDS = ("data", "points", "tile_rows", "tiles", "halo", "largest", "neighbors", "at_random")


def halos(graph, tile):
    """Return, for each tile, its rows, those of others that it needs, and from how many tiles."""
    edges, n_tiles = graph.tocoo(), int(tile.max()) + 1
    crossing = tile[edges.row] != tile[edges.col]
    owner, column = tile[edges.row[crossing]].astype(np.int64), edges.col[crossing]
    needed = np.unique(owner * graph.shape[0] + column)
    owner, column = np.divmod(needed, graph.shape[0])
    partners = np.unique(owner * n_tiles + tile[column]) // n_tiles
    sizes = np.bincount(tile, minlength=n_tiles)
    return sizes, np.bincount(owner, minlength=n_tiles), np.bincount(partners, minlength=n_tiles)


def tiles_of(X, most):
    """Return the tile of each point, of at most so many."""
    n_cells = number_of_cells(len(X), most)
    count = min(len(X), TRAINING_PER_CELL * n_cells)
    rows = np.sort(np.random.default_rng(0).choice(len(X), count, replace=False))
    trained = train(X[rows], n_cells)
    cell = cells_of(trained.frame(X), trained)
    cells = grouped(trained, np.bincount(cell, minlength=len(trained.centres)), most)
    return cells.tile[cell]


def measure(name, X):
    """Yield a row of the table for each size of tiles."""
    graph, found = neighborhood_graph(X, n_neighbors=15)
    graph = symmetric(graph)
    points = found.points_of(np.arange(found.n))
    for share in SHARES:
        tile = tiles_of(points, -(-found.n // share) * 5 // 4)
        sizes, halo, partners = halos(graph, tile)
        shuffled = np.random.default_rng(0).permutation(tile)
        random_sizes, random_halo, _ = halos(graph, shuffled)
        values = (
            *(name, found.n, round(sizes.mean()), len(sizes), f"{halo.sum() / sizes.sum():.3g}"),
            *(f"{(halo / sizes).max():.3g}", f"{partners.mean():.1f}"),
            f"{random_halo.sum() / random_sizes.sum():.3g}",
        )
        yield dict(zip(FIELDS, values, strict=True))


def data(n, mnist):
    """Yield names and points."""
    yield "uniform cube, 3 dimensions", np.random.default_rng(0).random((n, 3))
    for name, write, d in (("clouds, 8", whole_graph.write, 8), ("clouds, 50", streams.write, 50)):
        path = Path(f"/tmp/halo-{d}.npy")
        write(path, n, d) if d == 8 else write(path, n)
        yield f"{name} dimensions", np.load(path)
        path.unlink()
    if mnist:
        X, _ = hs.datasets.mnist(mnist)
        X = X.astype(np.float64)
        yield "MNIST, 784 dimensions", X
        yield "MNIST, 50 dimensions", hs.classical.PCA(50).fit_transform(X)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mnist", help="folder of the files of the test digits")
    parser.add_argument("--points", type=int, default=100_000, help="of made data")
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.name}")
    args = parser.parse_args()
    rows = []
    for name, X in data(args.points, args.mnist):
        for row in measure(name, X):
            print(*row.values(), sep=", ", flush=True)
            rows.append(row)
    if args.write:
        with TABLE.open("w", newline="") as stream:
            table = csv.DictWriter(stream, FIELDS, lineterminator="\n")
            table.writeheader()
            table.writerows(rows)


if __name__ == "__main__":
    main()
