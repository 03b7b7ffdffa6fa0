"""Words for messages, and libraries that may be missing: without a slow import."""

import difflib
import importlib
from collections.abc import Collection, Iterable
from typing import Any

_SAME = {  # parameters of other libraries, by another name here
    "k": "n_neighbors",
    "knn": "n_neighbors",
    "n_comps": "n_components",
    "n_dims": "n_components",
    "n_epochs": "n_iter",
    "n_evecs": "n_components",
    "n_landmark": "n_landmarks",
    "perplexity": "n_neighbors",
    "precomputed_knn": "neighbors",
    "rng": "random_state",
    "seed": "random_state",
    "t": "time",
}
_STEPS = "leave it out, because the number and length of steps follow from the data"
_INSTEAD = {  # what serves here in their place
    "decay": "leave it out, because weights have no decay to choose",
    "early_exaggeration": "leave it out (heatsketch.classical.TSNE has it)",
    "init": "leave it out (heatsketch.initialization makes starts for other libraries)",
    "learning_rate": _STEPS,
    "min_dist": "leave it out, because distances are those of the data",
    "n_epochs": _STEPS,
    "n_iter": _STEPS,
    "n_jobs": "leave it out, because all cores work; OMP_NUM_THREADS limits them",
    "verbose": "use `with heatsketch.progress():`",
}
_NAMES = {  # of other libraries, in lower case, and what serves here
    "isomap": "heatsketch.classical.Isomap",
    "locallylinearembedding": "heatsketch.classical.LocallyLinearEmbedding",
    "mds": "heatsketch.classical.MetricMDS",
    "pacmap": "heatsketch.HeatEmbedding, which makes pictures",
    "pca": "heatsketch.classical.PCA",
    "phate": "heatsketch.HeatEmbedding, which makes pictures",
    "spectralembedding": "heatsketch.classical.LaplacianEigenmap",
    "tsne": "heatsketch.classical.TSNE",
    "umap": "heatsketch.HeatEmbedding, which makes pictures",
}
_METHODS = dict.fromkeys(("pacmap", "phate", "trimap", "umap"), "heat-embedding")  # that serves
_FOLDERS = ("classical", "datasets", "io", "metrics", "plot", "uncertainty")  # with public names


def did_you_mean(name: Any, known: Iterable[str], end: str = ".") -> str:
    """Return the end of a sentence: the most similar known name as a suggestion, or `end`."""
    lower = {one.lower(): one for one in known}
    word = str(name).lower()
    served = word if word in lower else _METHODS.get(word, word)
    near = difflib.get_close_matches(served if served in lower else word, lower, n=1)
    return f"; did you mean {lower[near[0]]!r}?" if near else end


def no_parameter(owner: str, name: str, known: Collection[str], hint: str = "") -> str:
    """Say that a method has no parameter of a name, and, without a hint, what serves here."""
    meant = _SAME.get(name, name)
    if not hint and name in _INSTEAD and meant not in known:
        hint = f"; {_INSTEAD[name]}"
    return f"{owner} has no parameter {name!r}{hint or did_you_mean(meant, known, end='')}"


def no_name(module: str, name: str, known: Collection[str]) -> str:
    """Say that a module has no public name, and which was meant or serves in its place."""
    meant = _NAMES.get(name.lower(), "")
    hint = f"; use {meant} (docs/howto/from-other-libraries.md)" if meant else ""
    for folder in () if hint else _FOLDERS:
        if name in importlib.import_module(f"{module}.{folder}").__all__:
            hint = f"; use {module}.{folder}.{name}"
    return f"module {module!r} has no attribute {name!r}{hint or did_you_mean(name, known, end='')}"


def optional(module: str, what: str, extra: str) -> Any:
    """Return a module of an optional library, or say what needs it and which extra installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f'{what}; pip install "heatsketch[{extra}]"') from error
