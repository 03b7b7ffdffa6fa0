"""The pages of the documentation as a reader follows them: all code, in order, in one folder."""

import gzip
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.neighbors import kneighbors_graph

from heatsketch import cli
from problems.clouds import cloud
from problems.tables import write_csv, write_european

# Code that readers see, and what it needs or promises, in comments that they do not.
BLOCK = re.compile(
    r"^ *(?:```|<!-- )(python|sh)\b *([^\n]*)\n(.*?)^ *(?:```|-->)$", re.DOTALL | re.MULTILINE
)
NOT_RUN = "not-run"  # after the language: it installs something, or needs what a test has not


def blocks_of(page):
    """Return the language, the mark and the code of each block of a page."""
    blocks = BLOCK.findall(page.read_text("utf-8"))
    assert {mark for _, mark, _ in blocks} <= {"", NOT_RUN}, page
    return blocks


def run_page(page, kinds=("python", "sh")):
    """Run the blocks of a page in the current folder, and return the names that they make.

    The folder gets first the files of `FILES` that commands of the page name, as readers have them.
    """
    blocks = blocks_of(page)
    shown = "".join(block for kind, mark, block in blocks if (kind, mark) == ("sh", ""))
    words = set(shlex.split(shown, comments=True))
    for name in FILES.keys() & words:
        FILES[name](Path(name))
    names = {}
    for kind, mark, block in blocks:
        if mark == NOT_RUN or kind not in kinds:
            continue
        if kind == "python":
            exec(block, names)
            continue
        for line in block.splitlines():
            run_line(line)
    return names


def run_line(line):
    """Run a line of a shell: a command alone in this process, which has imported all."""
    words = shlex.split(line, comments=True)
    if words[:1] == ["heatsketch"] and not {"|", ">", "&&"} & set(words):
        assert cli.main(words[1:]) == 0, line
    elif words:
        if shutil.which("bash") is None:
            pytest.skip("there is no bash")
        ours = f'heatsketch() {{ {shlex.quote(sys.executable)} -m heatsketch "$@"; }}'
        subprocess.run(["bash", "-euo", "pipefail", "-c", f"{ours}\n{line}"], check=True)


# Files that readers have

IDS = np.array([f"s{i}" for i in range(90)])
KINDS = np.repeat(["setosa", "versicolor", "virginica"], 30)
POINTS = cloud(90, 3) + 2 * np.repeat(np.eye(3), 30, axis=0)
CELLS = np.array(["AAACCTGAGAAACC", *(f"cell_{i}" for i in range(1, 90))])


def write_cells(path):
    """Write an AnnData object with principal components, a UMAP and a graph."""
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(POINTS.astype(np.float32))
    adata.obs_names = CELLS
    adata.obsm = {"X_pca": POINTS, "X_umap": POINTS[:, :2]}
    adata.obsp["connectivities"] = kneighbors_graph(POINTS, 60, include_self=False).maximum(
        kneighbors_graph(POINTS, 60, include_self=False).T
    )
    adata.write_h5ad(path)


def write_edges(path):
    """Write a ring of names with a few chords."""
    nodes = range(30)
    edges = [(f"n{i}", f"n{(i + step) % 30}") for i in nodes for step in (1, 7)]
    path.write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in edges))


def write_export(path):
    """Write a table with decimal commas, gaps, and columns that are not features."""
    more = {"batch": [1] * 90, "date": ["2024-03-01"] * 90}
    write_european(path, POINTS, gaps={(3, 0), (5, 1)}, **more)


PENGUINS = Path(__file__).parents[2] / "docs" / "_static" / "penguins.csv"
FILES = {
    "big.csv.gz": lambda path: path.write_bytes(
        gzip.compress(b"a,b,c\n" + b"".join(b"%f,%f,%f\n" % tuple(row) for row in POINTS))
    ),
    "cells.csv": lambda path: write_csv(path, POINTS, cell=CELLS),
    "cells.h5ad": write_cells,
    "edges.csv": write_edges,
    "export.csv": write_export,
    "new.csv": lambda path: write_csv(path, POINTS[:9] + 0.1, sample=IDS[:9], species=KINDS[:9]),
    "penguins.csv": lambda path: shutil.copy(PENGUINS, path),
    "pairs.txt": lambda path: path.write_text("cell_1,cell_2\ncell_1,cell_80\n"),
    "points.csv": lambda path: write_csv(path, POINTS),
    "points.npy": lambda path: np.save(path, POINTS),
    "table.csv": lambda path: write_csv(path, POINTS, sample=IDS, species=KINDS),
    "umap.csv": lambda path: write_csv(path, POINTS[:, :2], ["UMAP1", "UMAP2"], sample=IDS),
}
