"""Who may import whom, read from the names of the folders; what only `operators` may ask."""

import ast
import graphlib
from pathlib import Path

import heatsketch

LAYERS = (  # a folder or module of the package may import those of its layer and before
    "_version _typing _words _tiles _random _checks _compile",
    "operators",
    "spectral",
    "neighbors graphs scales",
    "mixture layout markov",
    "metrics uncertainty",
    "estimators classical",
    "datasets io distributed plot comparison __init__ anndata reports cli __main__",
)
PLACE_OF = {room: place for place, room in enumerate(" ".join(LAYERS).split())}
FOUNDATION = set(LAYERS[0].split())
WITH_SKLEARN = {"metrics", "_checks", "neighbors", "operators", "mixture", "scales"}
WITH_SKLEARN |= set(" ".join(LAYERS[6:]).split())
OPTIONAL = {
    *("matplotlib", "pyarrow", "h5py", "anndata", "pandas", "polars", "openpyxl", "zarr"),
    *("openTSNE", "torch", "dask", "networkx", "igraph", "torch_geometric"),
}
OPERATORS = {
    *("Dense", "Sparse", "Kernel", "LowRank", "LinearMap", "Scaled", "Affine", "Deflated"),
    *("TorchDense", "TorchKernel", "TorchSparse"),
}
FILTERS = {"Accumulated", "Heat", "Power"}

ROOT = Path(heatsketch.__file__).parent
TREES = {}  # by the name of the module: "operators.base"; a folder is its __init__
for path in sorted(ROOT.rglob("*.py")):
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    TREES[name] = ast.parse(path.read_text(encoding="utf-8"))


def room_of(module):
    return module.partition(".")[0] or "__init__"


def imports(nodes):
    """Yield (line, dotted name) of imports: a.b.c for `from a.b import c` and `import a.b.c`."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "an import is absolute"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def own_imports(module, tree):
    """Yield (line, module of the package) for every import, also within functions."""
    for line, name in imports(ast.walk(tree)):
        package, _, target = name.partition(".")
        if package == "heatsketch":
            while target and target not in TREES:
                target = target.rpartition(".")[0]
            if target != module:
                yield line, target


def upward_imports(module, tree):
    """List the imports of a room that stands higher than the module's own."""
    room = room_of(module)
    return [
        f"{module}, line {line}: {target or 'heatsketch'}"
        for line, target in own_imports(module, tree)
        if not {room, room_of(target)} <= FOUNDATION and PLACE_OF[room_of(target)] > PLACE_OF[room]
    ]


def questions(classes, room):
    """List where modules outside a room ask isinstance(…, one of the classes)."""
    return [
        f"{module}, line {node.lineno}"
        for module, tree in TREES.items()
        if room_of(module) != room
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance"
        if {getattr(n, "attr", getattr(n, "id", "")) for n in ast.walk(node.args[1])} & classes
    ]


def libraries(nodes):
    return {name.partition(".")[0] for _, name in imports(nodes)}


def run_at_import(tree):
    """Yield the nodes that run when the module is imported: all but the bodies of functions."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from run_at_import(node)


def test_imports_go_down_the_layers():
    assert {room_of(module) for module in TREES} <= set(PLACE_OF)
    assert [fault for item in TREES.items() for fault in upward_imports(*item)] == []


def test_no_modules_import_each_other():
    """A module may import the folder that it stands in."""
    graph = {
        module: {t for _, t in own_imports(module, tree) if t and not module.startswith(f"{t}.")}
        for module, tree in TREES.items()
    }
    graphlib.TopologicalSorter(graph).prepare()


def test_nobody_asks_which_operator_or_filter_it_is():
    assert questions(OPERATORS, "operators") == []
    assert questions(FILTERS, "") == []


def test_libraries_stay_where_they_belong():
    found = {module for module, tree in TREES.items() if "sklearn" in libraries(ast.walk(tree))}
    assert {room_of(module) for module in found} <= WITH_SKLEARN
    at_import = {m: libraries(run_at_import(tree)) & OPTIONAL for m, tree in TREES.items()}
    assert {module for module, found in at_import.items() if found} == set()
