"""What the benchmarks share: data, runs in processes of their own, tables, and the machine."""

import argparse
import csv
import gzip
import importlib.metadata
import multiprocessing
import os
import platform
import resource
import statistics
import sys
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
import psutil

import heatsketch as hs
from heatsketch.core.operators import Operator

# Some systems pin OpenBLAS to an older processor, which halves the rate of its products in the
# processes started from here.
for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(variable, None)

DOCS = Path(__file__).resolve().parents[1] / "docs" / "benchmarks"
TRIAL = Path("out") / "benchmarks"  # where --small writes
PACKAGES = ("heatsketch", "numpy", "scipy", "scikit-learn", "numba")
MANY = 17_000  # points to warm up with: beyond 16,384 another neighbour search is used


# --- data -----------------------------------------------------------------------------------


def overlapping(n):
    """20 Gaussian clouds in 50 dimensions whose variances fall like 1/j, in random order, float32.

    So do those of principal components, which are often embedded. Three edges in a hundred of
    the graph of 30 neighbours join two clouds, so it is connected.
    """
    X, label = hs.datasets.gaussian_clouds(n, n_labels=20, dim=50, separation=5.0, rng=0)
    X /= np.sqrt(np.arange(1, 51))
    order = np.random.default_rng(1).permutation(n)
    return X[order].astype(np.float32), label[order]


def roll(n):
    """Return a Swiss roll in 3 dimensions, float32; it has no labels."""
    return hs.datasets.swiss_roll(n, rng=0)[0].astype(np.float32), None


def mnist(folder):
    """Return the 10,000 MNIST test digits, 784 pixels, from the IDX files (.gz) of a folder."""
    images, labels = (
        gzip.decompress((Path(folder) / f"t10k-{name}-ubyte.gz").read_bytes())
        for name in ("images-idx3", "labels-idx1")
    )
    X = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 784)
    return X.astype(np.float32), np.frombuffer(labels, np.uint8, offset=8).astype(int)


def images(n, folder):
    """Return the first n of the MNIST test digits."""
    X, label = mnist(folder)
    return X[:n], label[:n]


def digits(n):
    """Return the first n of scikit-learn's digits."""
    X, label = hs.datasets.digits()
    return X[:n], label[:n]


def cells(n):
    """Return the first n of the 700 blood cells that scanpy ships, 50 principal components."""
    import scanpy

    found = scanpy.datasets.pbmc68k_reduced()
    label = found.obs["bulk_labels"].cat.codes.to_numpy()
    return np.asarray(found.obsm["X_pca"])[:n], label.astype(int)[:n]


def clouds(n):
    """200 clouds in 20 dimensions; an edge in a hundred joins two of them. float32."""
    rng = np.random.default_rng(0)
    centres, label = 1.5 * rng.standard_normal((200, 20)), rng.integers(0, 200, n)
    return (centres[label] + rng.standard_normal((n, 20))).astype(np.float32), label


DATA = {
    "digits": digits,
    "cells": cells,
    "overlapping": overlapping,
    "clouds": clouds,
    "roll": roll,
    "images": images,
}


def draw(name, n, folder=None):
    """Return (X, label or None) of a data set by name; `folder` holds the MNIST files."""
    return images(n, folder) if name == "images" else DATA[name](n)


# --- runs -----------------------------------------------------------------------------------


def peak_memory():
    """Return the largest memory of this process so far, in MB."""
    try:  # ru_maxrss starts at the size of the process that started this one
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 2**10
    except (OSError, IndexError):
        unit = 2**20 if platform.system() == "Darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def timed(function, *arguments):
    """Return (seconds, result)."""
    started = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - started, result


def run_apart(function, *arguments, limit, memory=None):
    """Call a function in a new process and return its dict.

    If there is no result, return {"note": reason}: more than `limit` seconds or `memory` MB (by
    default nine tenths of the machine's), an exception, a package that is not installed.
    """
    memory = memory or 0.9 * psutil.virtual_memory().total / 2**20
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send_result, args=(theirs, function, arguments))
    process.start()
    theirs.close()
    deadline = time.monotonic() + limit
    try:
        while not ours.poll(0.2):
            if time.monotonic() > deadline:
                return {"note": f"over {limit:.0f} s"}
            if _memory_of(process.pid) > memory:
                return {"note": f"over {memory / 1024:.0f} GB"}
        return ours.recv()
    except EOFError:
        return {"note": "the process died"}
    finally:
        _end(process)


def _send_result(connection, function, arguments):
    warnings.simplefilter("ignore")
    try:
        result = function(*arguments)
    except ImportError as error:
        result = {"note": f"not installed: {error.name or error}"}
    except Exception as error:
        traceback.print_exc()
        result = {"note": f"failed: {type(error).__name__}"}
    connection.send(result)


def _memory_of(pid):
    try:
        return psutil.Process(pid).memory_info().rss / 2**20
    except psutil.Error:
        return 0.0


def _end(process):
    """End a process and those it started."""
    try:
        children = psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        children = []
    if process.is_alive():
        process.kill()
    process.join()
    for child in children:
        if child.is_running():
            child.kill()


class Counting(Operator):
    """An operator that counts products by blocks, perhaps with an interval of its own."""

    def __init__(self, A, spectrum=None):
        self.A, self.n, self.dtype = A, A.n, A.dtype
        self.spectrum = A.spectrum if spectrum is None else spectrum
        self.products = 0

    def asarray(self, X):
        return self.A.asarray(X)

    def _matmul(self, X):
        self.products += X.ndim == 2
        return self.A @ X


def repeated(tasks, arguments, title=""):
    """Run tasks {key: (function, *arguments)} by turns and return {key: list of dicts}.

    Each of the --repeats rounds runs every task once, as function(*arguments, round), so that all
    run under the same conditions. A task is not repeated when it has failed, or when its processes
    took longer than --limit seconds in all.
    """
    found, spent = {key: [] for key in tasks}, dict.fromkeys(tasks, 0.0)
    for turn in range(arguments.repeats):
        for key, task in tasks.items():
            if spent[key] > arguments.limit or any(result.get("note") for result in found[key]):
                continue
            started = time.monotonic()
            result = run_apart(*task, turn, limit=arguments.limit)
            spent[key] += time.monotonic() - started
            found[key].append(result)
            say(f"{title} {key}: {_said(result)}")
    return found


def _said(result):
    return result.get("note") or ", ".join(
        f"{name} {value:.4g}" for name, value in result.items() if isinstance(value, float)
    )


def medians(results):
    """Return the medians of the numbers in dicts, over those that have them, and how many ran.

    The note of a run that failed is kept, with the numbers of the runs before it.
    """
    good = [result for result in results if not result.get("note")]
    merged = {
        name: statistics.median(result[name] for result in good if name in result)
        for name in dict.fromkeys(name for result in good for name in result)
    }
    failed = [result["note"] for result in results if result.get("note")]
    return merged | {"runs": len(good)} | ({"note": failed[0]} if failed else {})


# --- tables ---------------------------------------------------------------------------------


def parser(text, repeats=5, limit=360.0):
    """Return the argument parser that all benchmarks share."""
    options = argparse.ArgumentParser(description=text.splitlines()[0])
    options.add_argument("--small", action="store_true", help="tiny sizes, as a test of the script")
    options.add_argument("--only", nargs="+", help="names (or parts of names) of what to run")
    options.add_argument("--repeats", type=int, default=repeats)
    text = "seconds a process may take, warming up and judging included"
    options.add_argument("--limit", type=float, default=limit, help=text)
    options.add_argument("-o", "--output", type=Path, help="folder of the CSV")
    return options


def chosen(names, only):
    """Return the names that are in `only`, or of which it has a part that is no name itself."""
    if only is None:
        return list(names)
    parts = [part for part in only if part not in names]
    return [name for name in names if name in only or any(part in name for part in parts)]


def say(text):
    """Print a line of progress, apart from the table."""
    print(text, file=sys.stderr, flush=True)


def save(name, rows, arguments, packages=PACKAGES):
    """Write rows (dicts; what one lacks is left empty) as CSV, and beside it the machine.

    Returns both as Markdown.
    """
    folder = arguments.output or (TRIAL if arguments.small else DOCS)
    folder.mkdir(parents=True, exist_ok=True)
    heads = list(dict.fromkeys(head for row in rows for head in row))
    rows = [{head: _cell(row.get(head)) for head in heads} for row in rows]
    with (folder / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, heads)
        writer.writeheader()
        writer.writerows(rows)
    described = environment(packages)
    (folder / f"{name}.txt").write_text(described + "\n")
    return f"{described}\n\n{markdown(rows)}"


def _cell(value):
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def markdown(rows):
    """Return rows (dicts of texts) as a Markdown table."""
    heads = list(rows[0])
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    lines += ["| " + " | ".join(row[head] for head in heads) + " |" for row in rows]
    return "\n".join(lines)


def environment(packages=PACKAGES):
    """Say versions, processor, threads and memory in one line."""
    found = [f"Python {platform.python_version()}"]
    for package in packages:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{package} not installed")
    memory = psutil.virtual_memory().total / 2**30
    return (
        f"{', '.join(found)}; {_processor()}, {n_threads()} threads, {memory:.0f} GB, "
        f"{platform.system()}"
    )


def n_threads():
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _processor():
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    facts = dict(line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    facts = {key.strip(): value.strip() for key, value in facts.items()}
    flags = facts.get("flags", "").split()
    width = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "no AVX2"
    name, family = facts.get("model name", platform.machine()), facts.get("cpu family", "?")
    return f"{name} (family {family}, {width}, {facts.get('cache size', '?')} cache)"
