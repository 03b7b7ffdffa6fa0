"""A fuzzer of every reader: valid files, each damaged in a reproducible way, read in a process.

Case number `i` of a reader is the same damage in every run. The outcome of reading must be a
result, or a ValueError or OSError with a message: no crash, no other error, no hang, no growth.

    python tools/fuzz.py 20000                all readers, about 20,000 cases in all
    python tools/fuzz.py 2000 h5ad            one reader
    python tools/fuzz.py 1 h5ad 1234          one case, with its traceback and the file kept
"""

import gzip
import io as streams
import os
import re
import shutil
import signal
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.io import mmwrite

from heatsketch import io
from heatsketch.io.edges import read_matrix_market

SECONDS, MEGABYTES = 20, 1500  # of one case: the memory is what `check_budget` grants, and a half
N, D = 12, 5
NUMBERS = (0, 1, 7, 127, 255, 2**15, 2**16 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1)
WORDS = b'nan|-inf|1e999|null|[]|{}|""|-1|0|true|"|\x00|\xff\xfe|\r\n|,|;;;|\t|#'.split(b"|")
WORDS += [b"9" * 30, b"9" * 5000, b"[" * 2000]


# Valid files


def frame(rng):
    values = {f"f{j}": rng.normal(size=N).round(3) for j in range(D)}
    names = {"id": [f"p{i}" for i in range(N)], "label": list("abc" * (N // 3))}
    return pd.DataFrame(values | names)


def save_text(path, rng):
    sep = "," if ".csv" in path.suffixes else "\t"
    frame(rng).to_csv(path, sep=sep, index=False, compression="infer")


def save_npz(path, rng):
    if rng.random() < 0.5:
        return np.savez_compressed(path, X=rng.normal(size=(N, D)), y=np.arange(N))
    return sparse.save_npz(path, sparse.random(N, D, 0.4, format="csr", random_state=0))


def cells(rng):
    import anndata

    X = rng.normal(size=(N, D)).astype(np.float32)
    obs = frame(rng).set_index("id").drop(columns="f0").astype({"label": "category"})
    obs["kept"] = pd.array([True, None] * (N // 2), dtype="boolean")
    X = X if rng.random() < 0.5 else sparse.csr_matrix(X * (X > 0))
    return anndata.AnnData(X, obs=obs, obsm={"X_pca": rng.normal(size=(N, 2))})


def save_h5ad(path, rng):
    cells(rng).write_h5ad(path, compression="gzip" if rng.random() < 0.5 else None)


def save_zarr(path, rng):
    import zarr

    if rng.random() < 0.5:
        return cells(rng).write_zarr(path)
    form = {"chunks": (5, D), "zarr_format": 2 if rng.random() < 0.5 else 3}
    array = zarr.create_array(str(path), shape=(N, D), dtype="f8", **form)
    array[...] = rng.normal(size=(N, D))


def save_edges(path, rng):
    sep, ends = "," if ".csv" in path.suffixes else " ", rng.integers(0, N, (2, 3 * N))
    lines = [f"n{i}{sep}n{j}{sep}{rng.random():.3f}" for i, j in ends.T]
    path.write_text("\n".join([sep.join(("source", "target", "weight")), *lines]))


def save_mtx(path, rng):
    A = sparse.random(N, N, density=0.3, random_state=rng.integers(100))
    mmwrite(path, A + A.T, symmetry=str(rng.choice(["symmetric", "general"])))


def save_model(path, rng):
    sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "io"))
    import fitted

    kinds = ("HeatSketch", "HeatSketch-dense", "MixtureDiffusion", "HeatEmbedding")
    model, X, _ = fitted.sketches()[kinds[int(path.stem[-1])]]
    io.save_model(model.fit(X), path)


TEXTS = ("csv", "tsv", "txt", "csv.gz", "tsv.gz")
READERS = dict.fromkeys(TEXTS, (save_text, io.read_table)) | {
    "npy": (lambda path, rng: np.save(path, rng.normal(size=(N, D))), io.read_table),
    "npz": (save_npz, io.read_table),
    "parquet": (lambda path, rng: frame(rng).to_parquet(path), io.read_table),
    "h5ad": (save_h5ad, io.read_table),
    "xlsx": (lambda path, rng: frame(rng).to_excel(path, index=False), io.read_table),
    "zarr": (save_zarr, io.read_table),
    "mtx": (save_mtx, read_matrix_market),
    "edges.csv": (save_edges, io.read_graph),
    "edges.txt": (save_edges, io.read_graph),
    "model": (save_model, io.load_model),
}
MAY_DIE = {"h5ad"}  # of faults of HDF5


# Damage


def damaged(data, rng):
    """Return bytes with one to three kinds of damage."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        HARMS[rng.integers(len(HARMS))](data, rng)
    return bytes(data)


def place(data, rng):
    """Return a place, as often among the first bytes, where headers are, as anywhere."""
    most = len(data) if rng.random() < 0.5 else min(len(data), 256)
    return int(rng.integers(most + 1))


def overwrite(data, rng):
    """Put an integer that is often wrong, of 1 to 8 bytes, in either order, at any place."""
    width = int(rng.choice([1, 2, 4, 8]))
    number = NUMBERS[rng.integers(len(NUMBERS))] % 256**width
    at = place(data, rng)
    data[at : at + width] = number.to_bytes(width, "little" if rng.random() < 0.5 else "big")


def cut(data, rng):
    at = place(data, rng)
    del data[at : at + int(rng.choice([1, 8, 64, len(data)]))]


def repeat(data, rng):
    start, at = place(data, rng), place(data, rng)
    data[at:at] = data[start : start + int(rng.integers(1, 256))] * int(rng.integers(1, 4))


def word(data, rng):
    """Put another word in the place of one: a name, type or filter, or a number of JSON."""
    found = list(re.finditer(rb"[A-Za-z_|<>][A-Za-z0-9_-]+|-?\d+(\.\d+)?", bytes(data[: 2**16])))
    if found:
        one, other = (found[rng.integers(len(found))] for _ in range(2))
        given = other[0] if rng.random() < 0.5 else WORDS[rng.integers(len(WORDS))]
        data[one.start() : one.end()] = given


HARMS = (overwrite, overwrite, cut, repeat, word, word)


def harm(path, rng):
    """Damage one file of a path, often within its compressed members, whose sums then are right."""
    if path.is_dir():
        path = rng.choice(sorted(file for file in path.rglob("*") if file.is_file()))
    data = path.read_bytes()
    inside = rng.random() < 0.7
    if inside and data[:2] == b"\x1f\x8b":
        path.write_bytes(gzip.compress(damaged(gzip.decompress(data), rng), mtime=0))
    elif inside and data[:2] == b"PK":
        with zipfile.ZipFile(streams.BytesIO(data)) as old, zipfile.ZipFile(path, "w") as new:
            chosen = rng.choice(old.namelist())
            for name in old.namelist():
                content = old.read(name)
                new.writestr(name, damaged(content, rng) if name == chosen else content)
    else:
        path.write_bytes(damaged(data, rng))


# One case, many cases


def make(reader, case, folder):
    """Write the damaged file of a case and return its path."""
    rng = np.random.default_rng([sorted(READERS).index(reader), case])
    path = Path(folder, f"points.{reader}")
    valid = Path(folder, f"valid-{case % 4}.{reader}")
    if not valid.exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            READERS[reader][0](valid, np.random.default_rng(case % 4))
    if valid.is_dir():
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(valid, path)
    else:
        shutil.copyfile(valid, path)
    harm(path, rng)
    return path


def outcome(reader, path):
    """Read, and say in a word what came of it; anything but "read" and "refused" is a fault."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            READERS[reader][1](path)
    except (ValueError, OSError) as error:
        is_named = len(str(error)) >= 15 and "points" in str(error)
        if isinstance(error, UnicodeError) or not is_named:
            return f"unclear: {type(error).__name__}: {error}"[:300]
        return "refused"
    except MemoryError:  # an array of HDF5 that claims more than there is
        return "refused"
    except BaseException as error:
        return f"foreign: {type(error).__name__}: {error}"[:300]
    return "read"


def run(reader, case, folder):
    """Read one case in a process of its own, with limits; return the outcome."""
    import resource  # POSIX only, as os.fork

    path, said = make(reader, case, folder), Path(folder, "said")
    said.write_text("")
    child = os.fork()
    if not child:
        signal.alarm(SECONDS)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        before = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        top = before + MEGABYTES * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (top, top))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        said.write_text(outcome(reader, path), errors="replace")
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return "died" if reader in MAY_DIE and name != "SIGALRM" else f"killed: {name}"
    return said.read_text()


def main(count, reader=None, case=None):
    """Read cases and print what came of them, or read one with its traceback; see above."""
    if case is not None:
        path = make(reader, int(case), tempfile.mkdtemp())
        print(path, READERS[reader][1](path))
        return 0
    readers, failed = [reader] if reader else sorted(READERS), 0
    for name in readers:
        with tempfile.TemporaryDirectory() as folder:
            found = [run(name, i, folder) for i in range(-(-int(count) // len(readers)))]
        print(name, dict(Counter(said.partition(":")[0] for said in found)), flush=True)
        for i, said in enumerate(found):
            if said not in ("read", "refused", "died"):
                failed += 1
                print(f"  case {i}: {said}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
