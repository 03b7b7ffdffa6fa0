"""Which pictures show three paths of a protein, and are the rates of a diffusion map right?

Run: python benchmarks/molecules.py --only paths --repeats 5 (8 minutes), then --only rates
Needs: pip install MDAnalysis MDAnalysisTests deeptime pacmap

The paths lead adenylate kinase from closed to open: 300 frames of three simulations, as
docs/tutorials/molecules.md reads them. They meet at both ends. Of each picture, in units of the
mean distance from a first to a last frame: "ends", the largest distance of two first or two last
frames; "gap", how near the middle third of one path comes to another, the mean of the nearest
distances, for the two paths that come nearest; "step", the longest way between successive frames.
A picture shows the paths if it at most doubles ends and step, and at most halves the gap. "order"
is the rank correlation with the RMSD of all pairs of frames. Medians over seeds.

Then deeptime's walk in a plane with three wells, 20,000 frames for each seed: the ratios of the
rates of its slow motions, by diffusion maps of every fourth frame and by deeptime's Markov state
models of all frames, beside the eigenvalues of the generator on a grid. "stretched": x is
multiplied by 3.
"""

import warnings

import _harness as harness
import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh
from scipy.spatial.distance import pdist, squareform
from scipy.spatial.transform import Rotation
from scipy.stats import spearmanr
from sklearn.decomposition import PCA
from sklearn.manifold import MDS, TSNE

import heatsketch as hs

PACKAGES = (*harness.PACKAGES, "MDAnalysis", "MDAnalysisTests", "deeptime", "umap-learn", "phate")
PACKAGES += ("pacmap",)
NEIGHBORS = 10
FRAMES, EVERY, STATES, INTERVAL = 20_000, 4, 100, 0.1  # INTERVAL: time between two frames


# --- the paths --------------------------------------------------------------------------------


def frames():
    """Return the superposed frames (300, 642), and the path of each."""
    import MDAnalysis
    from MDAnalysisTests import datafiles as files

    runs = ((files.PSF, files.DCD), (files.PSF, files.DCD2))
    runs += ((files.PSF_NAMD_GBIS, files.DCD_NAMD_GBIS),)
    paths = []
    for run in runs:
        atoms = MDAnalysis.Universe(*run).select_atoms("protein and name CA")
        paths.append(np.array([atoms.positions for _ in atoms.universe.trajectory], dtype=float))
    atoms = np.concatenate(paths)
    atoms -= atoms.mean(axis=1, keepdims=True)
    X = np.array([Rotation.align_vectors(atoms[0], a)[0].apply(a).ravel() for a in atoms])
    return X, np.repeat(range(3), [len(path) for path in paths]), rmsd(atoms)


def rmsd(atoms):
    """Return the RMSD of all pairs of centred frames, each pair superposed by itself."""
    squares = (atoms**2).sum(axis=(1, 2))
    found = np.zeros((len(atoms), len(atoms)))
    for row, one in enumerate(atoms):
        products = np.einsum("ak,fal->fkl", one, atoms)
        values = np.linalg.svd(products, compute_uv=False)
        values[:, 2] *= np.sign(np.linalg.det(products))
        found[row] = squares[row] + squares - 2 * values.sum(axis=1)
    found = np.sqrt(np.maximum(found, 0) / atoms.shape[1])
    np.fill_diagonal(found, 0)
    return (found + found.T) / 2


def heat(**options):
    return lambda X, seed: hs.HeatEmbedding(2, random_state=seed, **options).fit_transform(X)


def isomap(n_neighbors):
    return lambda X, seed: hs.classical.Isomap(2, n_neighbors=n_neighbors).fit_transform(X)


def diffusion_map(X, seed):
    return hs.DiffusionMap(2, time=1, random_state=seed).fit_transform(X)


def pca(X, seed):
    return PCA(2).fit_transform(X)


def mds(X, seed):
    return MDS(2, n_init=1, init="random", random_state=seed).fit_transform(X)


def tsne(**options):
    return lambda X, seed: TSNE(random_state=seed, **options).fit_transform(X)


def umap(**options):
    def picture(X, seed):
        import umap

        return umap.UMAP(random_state=seed, **options).fit_transform(X)

    return picture


def phate(**options):
    def picture(X, seed):
        import phate

        return phate.PHATE(random_state=seed, verbose=0, **options).fit_transform(X)

    return picture


def pacmap(X, seed):
    import pacmap

    return pacmap.PaCMAP(random_state=seed).fit_transform(X.astype(np.float32))


# Defaults of each package first: docs/tutorials/molecules.md shows these.
PICTURES = {
    "HeatEmbedding": heat(),
    "Isomap": isomap(10),
    "PCA": pca,
    "t-SNE": tsne(),
    "UMAP": umap(),
    "PHATE": phate(),
    "PaCMAP": pacmap,
}
OTHERS = {
    "DiffusionMap": diffusion_map,
    "MDS": mds,
    "HeatEmbedding, 10 neighbours": heat(n_neighbors=10),
    "HeatEmbedding, 20 neighbours": heat(n_neighbors=20),
    "HeatEmbedding, 30 neighbours": heat(n_neighbors=30),
    "HeatEmbedding, 50 neighbours": heat(n_neighbors=50),
    "Isomap, 5 neighbours": isomap(5),
    "Isomap, 15 neighbours": isomap(15),
    "UMAP, 30 neighbours": umap(n_neighbors=30),
    "t-SNE, perplexity 60": tsne(perplexity=60),
    "PHATE, 15 neighbours": phate(knn=15),
}
DRAWN = ("HeatEmbedding", "Isomap", "PCA", "t-SNE", "UMAP", "PHATE")


def judged(distances, path, truth):
    """Return the measures of a picture from its distances (n, n)."""
    places = [np.flatnonzero(path == one) for one in range(3)]
    first, last = ([place[end] for place in places] for end in (0, -1))
    middle = [place[len(place) // 3 : 2 * len(place) // 3] for place in places]
    gaps = [
        distances[np.ix_(middle[one], places[other])].min(axis=1).mean()
        for one in range(3)
        for other in range(3)
        if one != other
    ]
    near = np.argsort(distances, axis=1)[:, 1 : NEIGHBORS + 1]
    true = np.argsort(truth, axis=1)[:, 1 : NEIGHBORS + 1]
    kept = [len(set(a) & set(b)) / NEIGHBORS for a, b in zip(near, true, strict=True)]
    unit = distances[np.ix_(first, last)].mean()
    return {
        "neighbours kept": float(np.mean(kept)),
        "order": float(spearmanr(squareform(distances), squareform(truth)).statistic),
        "ends": max(distances[np.ix_(end, end)].max() for end in (first, last)) / unit,
        "gap": min(gaps) / unit,
        "step": max(distances[place[:-1], place[1:]].max() for place in places) / unit,
    }


def pictures(repeats, image):
    """Yield a row for each method, the frames themselves first."""
    X, path, truth = frames()
    wanted = judged(truth, path, truth)
    yield {"picture": "(the frames)"} | {key: round(wanted[key], 2) for key in wanted}
    drawn = {}
    for name, picture in (PICTURES | OTHERS).items():
        seeds = [np.asarray(picture(X, seed), dtype=float) for seed in range(repeats)]
        found = [judged(squareform(pdist(Y)), path, truth) for Y in seeds]
        shown = [
            one["ends"] <= 2 * wanted["ends"]
            and one["step"] <= 2 * wanted["step"]
            and one["gap"] >= wanted["gap"] / 2
            for one in found
        ]
        harness.say(f"{name}: {sum(shown)} of {repeats}")
        row = {key: round(harness.medians(found)[key], 2) for key in wanted}
        settings = "default" if name in PICTURES else "other"
        yield (
            {"picture": name}
            | row
            | {
                "shown": f"{sum(shown)} of {repeats}",
                "settings": settings,
            }
        )
        drawn[name] = seeds[0]
    if image is not None:
        draw({name: drawn[name] for name in DRAWN}, path, image)


def draw(found, path, image):
    figure = hs.plot.new_figure(9.0, 5.6, dpi=90)
    for axis, (name, Y) in zip(figure.subplots(2, 3).flat, found.items(), strict=True):
        for one, label in enumerate(("DIMS 1", "DIMS 2", "targeted")):
            axis.plot(*Y[path == one].T, ".-", lw=0.6, markersize=3, label=label)
        axis.set(title=name, xticks=[], yticks=[])
        axis.set_aspect("equal", "datalim")
    lines, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=3, frameon=False)
    hs.plot.save(figure, image)


# --- the rates --------------------------------------------------------------------------------


def potential(x, y):
    """Return the potential of deeptime's `triple_well_2d`, from Schütte and Sarich 2013."""
    saddle, well = (np.exp(-(x**2) - (y - at) ** 2) for at in (1 / 3, 5 / 3))
    left, right = (np.exp(-((x - at) ** 2) - y**2) for at in (-1, 1))
    return 3 * saddle - 3 * well - 5 * (left + right) + 0.2 * (x**4 + (y - 1 / 3) ** 4)


def true_rates(side):
    """Return the three slowest rates: eigenvalues of the generator, by square roots, on a grid."""
    diffusion = 1.09**2 / 2
    x, spacing = np.linspace(-2.6, 2.9, side, retstep=True)
    energy = potential(*np.meshgrid(x, x, indexing="ij")) / diffusion
    place = np.arange(side**2).reshape(side, side)
    i = np.concatenate([place[1:].ravel(), place[:, 1:].ravel()])
    j = np.concatenate([place[:-1].ravel(), place[:, :-1].ravel()])
    speed = diffusion / spacing**2
    half = np.exp((energy.ravel()[i] - energy.ravel()[j]) / 2)  # from i to j
    leaving = np.bincount(i, half, side**2) + np.bincount(j, 1 / half, side**2)
    steps = sparse.coo_matrix((np.ones(len(i)), (i, j)), (side**2, side**2))
    symmetric = speed * (sparse.diags(leaving) - steps - steps.T)
    return np.sort(eigsh(symmetric.tocsc(), 4, sigma=-1e-6)[0])[1:]


def of_map(stretch=1.0, **options):
    def rates(walk):
        X = walk[::EVERY] * [stretch, 1]
        return -np.log(hs.DiffusionMap(3, time=1, **options).fit(X).eigenvalues_)

    return rates


def of_states(lag, stretch=1.0):
    def rates(walk):
        from deeptime.clustering import KMeans
        from deeptime.markov import TransitionCountEstimator
        from deeptime.markov.msm import MaximumLikelihoodMSM

        X = walk * [stretch, 1]
        states = KMeans(STATES, fixed_seed=0).fit_fetch(X[::EVERY]).transform(X)
        counts = TransitionCountEstimator(lag, "sliding").fit_fetch(states).submodel_largest()
        return 1 / (INTERVAL * MaximumLikelihoodMSM().fit_fetch(counts).timescales(k=3))

    return rates


GUESSES = {
    'DiffusionMap, "variable", alpha=0.5': of_map(affinity="variable", alpha=0.5),
    'DiffusionMap, "variable", alpha=1': of_map(affinity="variable", alpha=1),
    'DiffusionMap, "knn", alpha=0.5': of_map(alpha=0.5),
    'DiffusionMap, "variable", alpha=0.5, stretched': of_map(3, affinity="variable", alpha=0.5),
    "Markov states, lag 0.1": of_states(1),
    "Markov states, lag 0.5": of_states(5),
    "Markov states, lag 0.5, stretched": of_states(5, 3),
}


def rates(repeats):
    """Yield a row for each method: least, median and largest ratio over the seeds."""
    from deeptime.data import triple_well_2d

    truth = true_rates(200)
    yield {"method": "(true)", "second / first": f"{truth[1] / truth[0]:.1f}"} | {
        "third / first": f"{truth[2] / truth[0]:.0f}"
    }
    system = triple_well_2d(h=1e-3, n_steps=100)
    start = np.array([[-1.0, 0.0]])
    walks = [system.trajectory(start, FRAMES, seed=seed, n_jobs=1) for seed in range(repeats)]
    for name, guess in GUESSES.items():
        found = np.array([guess(walk) for walk in walks])
        ratios = found[:, 1:] / found[:, :1]
        harness.say(f"{name}: {np.round(ratios, 1).tolist()}")
        low, middle, high = np.percentile(ratios, (0, 50, 100), axis=0)
        said = [f"{middle[k]:.1f} ({low[k]:.1f} to {high[k]:.1f})" for k in range(2)]
        yield {"method": name, "second / first": said[0], "third / first": said[1]}


def main():
    arguments = harness.parser(__doc__, repeats=10).parse_args()
    warnings.simplefilter("ignore")
    repeats = 1 if arguments.small else arguments.repeats
    if harness.chosen(["paths", "rates"], arguments.only) != ["rates"]:
        image = None if arguments.small else harness.DOCS.parent / "images" / "molecules-paths.png"
        print(harness.save("molecules_paths", list(pictures(repeats, image)), arguments, PACKAGES))
    if harness.chosen(["paths", "rates"], arguments.only) != ["paths"]:
        print(harness.save("molecules_rates", list(rates(repeats)), arguments, PACKAGES))


if __name__ == "__main__":
    main()
