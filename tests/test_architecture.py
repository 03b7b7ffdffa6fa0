"""Who may import whom, read from the names of the folders; what only `operators` may ask."""

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

# A room (a folder or a module of the package) may import those before it.
LAYERS = (
    (
        *("_version", "_typing", "_words", "_tensors", "_tiles", "_random"),
        *("_checks", "_compile", "_progress"),
    ),
    ("operators",),
    ("spectral",),
    ("neighbors", "graphs", "scales"),
    ("mixture", "isometry", "markov"),
    ("metrics", "uncertainty"),
    ("estimators", "classical"),
    (
        "datasets",
        "io",
        "distributed",
        "plot",
        "comparison",
        "__init__",
        "anndata",
        "reports",
        "cli",
        "__main__",
    ),
)
PLACE_OF = {room: place for place, room in enumerate(r for layer in LAYERS for r in layer)}
FOUNDATION = set(LAYERS[0])
WITH_SKLEARN = {
    "metrics",
    "_checks",
    "neighbors",
    "operators",
    "mixture",
    *(r for layer in LAYERS[6:] for r in layer),
}
OPTIONAL = {
    *("matplotlib", "pyarrow", "h5py", "anndata", "pandas", "polars", "openpyxl", "zarr"),
    *("openTSNE", "torch", "dask", "networkx", "igraph", "torch_geometric"),
}
OPERATORS = {
    *("Dense", "Sparse", "Kernel", "LowRank", "LinearMap", "Scaled", "Affine", "Deflated"),
    *("TorchDense", "TorchKernel", "TorchSparse"),
}
FILTERS = {"Accumulated", "Heat", "Power"}


class House:
    """The modules of a package by name ("operators.base"; a folder is its __init__)."""

    def __init__(self, root):
        self.root = root
        self.trees = {}
        for path in sorted(root.rglob("*.py")):
            text, name = path.read_text(encoding="utf-8"), self._name(path)
            self.trees[name] = ast.parse(text)
        self.packages = {self._name(path) for path in root.rglob("__init__.py")}

    def _name(self, path):
        parts = path.relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def room(self, module):
        return module.partition(".")[0] or "__init__"

    def imported(self, module, tree=None):
        """Yield (line, module of the package) for every import, also within functions."""
        for node, name in imported_names(tree or self.trees[module], module, self.packages):
            package, _, target = name.partition(".")
            if package == "heatsketch":
                while target and target not in self.trees:
                    target = target.rpartition(".")[0]
                if target != module:
                    yield node.lineno, target

    def upward_imports(self, module, tree=None):
        """List the imports of a room that stands higher than the module's own."""
        room = self.room(module)
        return [
            f"{module}, line {line}: {target or 'heatsketch'}"
            for line, target in self.imported(module, tree)
            if self.room(target) != room
            and not {room, self.room(target)} <= FOUNDATION
            and PLACE_OF[self.room(target)] > PLACE_OF[room]
        ]

    def circle(self):
        """Return a circle of imports between modules, or an empty list."""
        graph = {m: {t for _, t in self.imported(m) if not _is_inside(m, t)} for m in self.trees}
        try:
            graphlib.TopologicalSorter(graph).prepare()
        except graphlib.CycleError as error:
            return error.args[1]
        return []

    def class_questions(self, classes, room):
        """List where modules outside a room ask isinstance(…, one of the classes)."""
        return [
            f"{module}, line {node.lineno}: {name}"
            for module, tree in self.trees.items()
            if self.room(module) != room
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance"
            for name in sorted(names_in(node.args[1]) & classes)
        ]


def _is_inside(module, target):
    """Say whether a module imports the folder it stands in, or `heatsketch` itself."""
    return target == "" or module.startswith(f"{target}.")


def names_in(node):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {
        n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)
    }


def imported_names(tree, module, packages):
    """Yield (node, dotted name): a.b.c for `from a.b import c` and for `import a.b.c`."""
    folder = ["heatsketch", *module.split(".")] if module else ["heatsketch"]
    folder = folder if module in packages else folder[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom):
            above = folder[: len(folder) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node, f"{base}.{alias.name}"


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


def _package():
    import heatsketch

    return Path(heatsketch.__file__).parent


HOUSE = House(_package())


def test_every_room_has_a_layer():
    assert {HOUSE.room(module) for module in HOUSE.trees} <= set(PLACE_OF)


def test_imports_go_down_the_layers():
    assert [fault for module in HOUSE.trees for fault in HOUSE.upward_imports(module)] == []


def test_no_modules_import_each_other():
    assert HOUSE.circle() == []


def test_nobody_asks_which_operator_it_is():
    assert HOUSE.class_questions(OPERATORS, "operators") == []


def test_nobody_asks_which_filter_it_is():
    assert HOUSE.class_questions(FILTERS, "") == []


def test_sklearn_stays_where_it_belongs():
    found = {m for m, t in HOUSE.trees.items() if "sklearn" in foreign_imports(ast.walk(t))}
    assert {HOUSE.room(m) for m in found} <= WITH_SKLEARN


def test_optional_libraries_are_imported_inside_functions():
    found = {m for m, t in HOUSE.trees.items() if foreign_imports(run_at_import(t)) & OPTIONAL}
    assert found == set()


@pytest.mark.parametrize(
    ("module", "code", "is_faulty"),
    [
        ("_random", "from heatsketch._typing import Array", False),
        ("_random", "from heatsketch.operators.operator import Operator", True),
        ("spectral.filters", "from heatsketch.operators.operator import Operator", False),
        ("spectral.filters", "from ..neighbors import index", True),
        ("neighbors.index", "import heatsketch.graphs.links", True),
        ("graphs.links", "import heatsketch.neighbors.index", False),
        ("markov.affinity", "def f():\n    from heatsketch import datasets", True),
        ("markov.affinity", "from heatsketch import ksum", True),
        ("estimators.heat_sketch", "from ..datasets import circle", True),
        ("io", "from heatsketch import datasets", False),
        ("spectral.filters", "import math\nfrom scipy.fft import dct", False),
    ],
)
def test_layer_rule_sees_each_way_of_importing(module, code, is_faulty):
    assert bool(HOUSE.upward_imports(module, ast.parse(code))) == is_faulty


def test_importing_the_package_imports_nothing_optional():
    # scikit-learn itself imports pandas where it is there: what counts is what comes on top.
    code = (
        "import sys, sklearn.base, sklearn.neighbors; before = set(sys.modules);"
        "from heatsketch import *;"
        f"print(*({OPTIONAL!r} & (set(sys.modules) - before)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == []
