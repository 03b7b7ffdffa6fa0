"""Who may import whom: layers, and optional libraries behind the functions that need them."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import heatsketch

ROOT = Path(heatsketch.__file__).parent

LAYERS = (
    ("_typing", "_array", "_checks", "_compile"),
    (
        "operators",
        "operators.base",
        "operators.csr",
        "operators.dense",
        "operators.exp2",
        "operators.kernel",
        "operators.lowrank",
        "operators.sparse",
    ),
    ("chebyshev", "filters", "spectrum", "sketch"),
    (
        "neighbors",
        "neighbors.given",
        "neighbors.index",
        "neighbors.kernels",
        "neighbors.links",
        "neighbors.lists",
        "neighbors.rows",
        "bandwidth",
        "dimension",
        "affinity",
        "certificates",
        "components",
        "connecting",
        "inverse",
        "normalize",
        "isometry",
        "isometry.descent",
        "isometry.kernels",
        "isometry.learn",
        "isometry.loss",
        "isometry.pairs",
        "mixture",
        "mixture.bounds",
        "mixture.cholesky",
        "mixture.kernel",
        "mixture.kernels",
        "mixture.lowrank",
        "mixture.maps",
        "mixture.overlaps",
        "mixture.parameters",
        "mixture.pivoted",
        "mixture.series",
        "mixture.steps",
    ),
    ("diffusion", "distances", "memory", "metrics", "quality"),
    (
        "classical",
        "classical._base",
        "classical.discriminant",
        "classical.graph",
        "classical.isomap",
        "classical.landmarks",
        "classical.laplacian",
        "classical.lle",
        "classical.mds",
        "classical.path_kernels",
        "classical.paths",
        "classical.pca",
        "classical.precomputed",
        "classical.scaling",
        "classical.singular",
        "classical.sne",
        "classical.sne.descent",
        "classical.sne.engines",
        "classical.sne.estimators",
        "classical.sne.initial",
        "classical.sne.kernels",
        "classical.sne.near",
        "classical.sne.objectives",
        "classical.sne.perplexity",
        "estimators",
        "estimators._base",
        "estimators.embedding",
        "estimators.heat",
        "estimators.isometry",
        "estimators.mixture",
        "estimators.spectral",
    ),
    (
        "",  # the package itself
        "__main__",
        "comparison",
        "comparison.references",
        "comparison.result",
        "comparison.run",
        "comparison.usage",
        "datasets",
        "datasets.idx",
        "datasets.pictures",
        "datasets.shapes",
        "methods",
        "plot",
        "plot.curves",
        "plot.figures",
        "plot.labels",
        "plot.panels",
        "plot.scatter",
        "io",
        "io.arrow",
        "io.files",
        "io.formats",
        "io.h5ad",
        "io.model",
        "io.npy",
        "io.npz",
        "io.parquet",
        "io.table",
        "io.text",
        "io.values",
        "cli",
        "cli.arguments",
        "cli.compare",
        "cli.datasets",
        "cli.embed",
        "cli.files",
        "cli.ksum",
        "cli.reporting",
        "cli.reproduce",
        "cli.score",
        "experiments",
        "experiments.figures",
        "experiments.methods",
        "experiments.mgc",
        "experiments.mgc_pictures",
        "experiments.mgc_stationary",
        "experiments.mgc_truncation",
        "experiments.notes",
        "experiments.notes_diffusion",
        "experiments.notes_graphs",
        "experiments.notes_measures",
        "experiments.notes_pictures",
        "experiments.pictures",
        "experiments.run",
        "experiments.schedule",
        "experiments.store",
        "experiments.summary",
        "experiments.trials",
    ),
)
LAYER_OF = {module: layer for layer, modules in enumerate(LAYERS) for module in modules}
FOUNDATION, OPERATORS, FILTERS, *_, TOP = range(len(LAYERS))

WITH_SKLEARN = (
    *("neighbors", "classical", "estimators"),
    *("comparison", "datasets", "experiments", "methods", "cli"),
)
MAY_IMPORT_SKLEARN = {m for m in LAYER_OF if m.partition(".")[0] in WITH_SKLEARN}
OPTIONAL = {
    *("matplotlib", "pyarrow", "h5py", "anndata", "pandas", "polars"),
    *("openTSNE", "torch", "dask"),
}


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def own_target(full_name):
    """Return the module of the package that a dotted name refers to, or None for a foreign one."""
    package, _, name = full_name.partition(".")
    if package != "heatsketch":
        return None
    while name and name not in LAYER_OF:
        name = name.rpartition(".")[0]
    return name


def imported_names(tree, module, is_package):
    """Yield (node, dotted name): a.b.c for `from a.b import c` and for `import a.b.c`."""
    folder = ["heatsketch", *module.split(".")] if module else ["heatsketch"]
    folder = folder if is_package else folder[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom):
            above = folder[: len(folder) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node, f"{base}.{alias.name}"


def layer_faults(module, tree, is_package=False):
    """List the imports of other parts of the package that the layers forbid."""
    layer, faults = LAYER_OF[module], []
    for node, name in imported_names(tree, module, is_package):
        target = own_target(name)
        if target is None:
            continue
        too_high = LAYER_OF[target] > layer
        hidden = layer == FILTERS and LAYER_OF[target] == OPERATORS
        hidden = (
            hidden and target != "operators.base" and name != "heatsketch.operators.as_operator"
        )
        if too_high or hidden:
            faults.append(f"{module}, line {node.lineno}: {name}")
    return faults


def run_at_import(tree):
    """Yield the nodes that run when the module is imported: all but the bodies of functions."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from run_at_import(node)


def foreign_imports(nodes):
    """Return the top-level names of the libraries imported by the nodes."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module.partition(".")[0])
    return names


SOURCES = {
    module_name(path): (path.name == "__init__.py", ast.parse(path.read_text(encoding="utf-8")))
    for path in sorted(ROOT.rglob("*.py"))
}


def test_every_module_has_a_layer():
    missing = sorted(set(SOURCES) - set(LAYER_OF))
    gone = sorted(set(LAYER_OF) - set(SOURCES))
    assert not missing, f"{missing} stand in no layer; enter them in LAYERS of {__file__}."
    assert not gone, f"{gone} are in LAYERS of {__file__} but not in the package; remove them."


@pytest.mark.parametrize("module", [m for m in SOURCES if m in LAYER_OF])
def test_imports_go_down_the_layers(module):
    is_package, tree = SOURCES[module]
    assert layer_faults(module, tree, is_package) == []


@pytest.mark.parametrize("module", SOURCES)
def test_sklearn_stays_where_it_belongs(module):
    if module not in MAY_IMPORT_SKLEARN:
        assert "sklearn" not in foreign_imports(ast.walk(SOURCES[module][1]))


@pytest.mark.parametrize("module", SOURCES)
def test_optional_libraries_are_imported_inside_functions(module):
    assert not foreign_imports(run_at_import(SOURCES[module][1])) & OPTIONAL


@pytest.mark.parametrize(
    ("module", "code", "is_faulty"),
    [
        ("_array", "from heatsketch._typing import Array", False),
        ("_array", "from heatsketch.operators.base import Operator", True),
        ("filters", "from heatsketch.operators.base import Operator", False),
        ("filters", "from heatsketch.operators import as_operator", False),
        ("filters", "from heatsketch.operators import Dense", True),
        ("spectrum", "import heatsketch.operators.kernel", True),
        ("spectrum", "from .operators import sparse", True),
        ("affinity", "def f():\n    from heatsketch import datasets", True),
        ("affinity", "from heatsketch import ksum", True),
        ("diffusion", "from heatsketch.affinity import knn_affinity", False),
        ("estimators.heat", "from ..datasets import circle", True),
        ("io", "from heatsketch import datasets", False),
        ("filters", "import math\nfrom scipy.fft import dct", False),
    ],
)
def test_layer_rule_sees_each_way_of_importing(module, code, is_faulty):
    assert bool(layer_faults(module, ast.parse(code))) == is_faulty


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import pandas as pd", True),
        ("class A:\n    import pandas", True),
        ("try:\n    import pandas\nexcept ImportError:\n    pass", True),
        ("def f():\n    import pandas", False),
    ],
)
def test_optional_rule_sees_module_level(code, found):
    assert bool(foreign_imports(run_at_import(ast.parse(code))) & OPTIONAL) == found


def test_importing_the_package_imports_nothing_optional():
    # scikit-learn itself imports pandas where it is there: what counts is what comes on top.
    code = (
        "import sys, sklearn.base, sklearn.neighbors; before = set(sys.modules); import heatsketch;"
        f"print(*({OPTIONAL!r} & (set(sys.modules) - before)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == []
