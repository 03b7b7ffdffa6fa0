"""Who may import whom, read from the names of the folders; what only some rooms may ask."""

import ast
import graphlib
import importlib
import inspect
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
from numba.core.dispatcher import Dispatcher

import heatsketch

LAYERS = (  # a folder or module of the package may import those of its layer and before
    "_version _words _arrays _messages _state _threads _random _checks _compile",
    "core",
    "spectral",
    "neighbors scales device",
    "mixture markov layout",
    "metrics uncertainty",
    "estimators classical",
    "datasets io distributed plot comparison __init__ anndata reports cli __main__",
)
PLACE_OF = {room: place for place, room in enumerate(" ".join(LAYERS).split())}
FOUNDATION = set(LAYERS[0].split())
WITH_SKLEARN = {"core", "device", "metrics", "neighbors", "mixture", "scales"}
WITH_SKLEARN |= {"_messages", "_checks"}
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
NOT_FOR_USERS = {"test", "bench", "docs", "quality", "dev"}  # extras
INSTALLED_AS = {"sklearn": "scikit-learn"}  # else a library is imported by its name

ROOT = Path(heatsketch.__file__).parent
TREES = {}  # by the name of the module: "core.operators"; a folder is its __init__
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
    """Yield (line, module of the package) for every import, also within functions.

    Only a device is loaded late: within functions, where a tensor shows up, and from anywhere.
    """
    at_once = {line for line, _ in imports(tree.body)}
    for line, name in imports(ast.walk(tree)):
        if name.startswith("heatsketch.device.") and line not in at_once:
            continue
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


def questions(classes, rooms):
    """List where modules outside some rooms ask isinstance(…, one of the classes)."""
    return [
        f"{module}, line {node.lineno}"
        for module, tree in TREES.items()
        if room_of(module) not in rooms
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance"
        if {getattr(n, "attr", getattr(n, "id", "")) for n in ast.walk(node.args[1])} & classes
    ]


def libraries(nodes):
    return {name.partition(".")[0] for _, name in imports(nodes)}


def declared(requirements):
    """Return the names of requirements, such as dask of dask[array]>=2024.8."""
    return {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}


def needed(nodes):
    """Return what other people's libraries are called where they are installed from."""
    found = libraries(nodes) - sys.stdlib_module_names - {"heatsketch"}
    return {INSTALLED_AS.get(name, name) for name in found}


def needed_by_formats(tree):
    """Return the libraries that io imports by their names: need("openpyxl", path)."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    named = [node.args[0] for node in calls if getattr(node.func, "id", "") == "need"]
    return {str(n.value).partition(".")[0] for n in named if isinstance(n, ast.Constant)}


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


def test_no_module_has_the_name_of_another_thing_in_its_folder():
    """Else a tool that imports a file by its path, as pytest does, puts the module in its place."""
    places = [f"heatsketch.{module}".rpartition(".") for module in TREES if module]
    folders = {folder: importlib.import_module(folder) for folder, _, _ in places}
    named = [(folder, name) for folder, _, name in places if name in dir(folders[folder])]
    hidden = [(f, name) for f, name in named if not inspect.ismodule(getattr(folders[f], name))]
    assert hidden == []


def test_nobody_asks_which_operator_or_filter_it_is():
    assert questions(OPERATORS, {"core", "device"}) == []
    assert questions(FILTERS, set()) == []


def test_libraries_stay_where_they_belong():
    found = {module for module, tree in TREES.items() if "sklearn" in libraries(ast.walk(tree))}
    assert {room_of(module) for module in found} <= WITH_SKLEARN
    at_import = {m: libraries(run_at_import(tree)) & OPTIONAL for m, tree in TREES.items()}
    assert {module for module, found in at_import.items() if found} == set()


def test_the_project_declares_what_it_imports():
    """What a module imports at once is a dependency, and what a function does also an extra."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    always = declared(project["project"]["dependencies"])
    optional = {name for extra in extras.keys() - NOT_FOR_USERS for name in declared(extras[extra])}
    for module, tree in TREES.items():
        assert needed(run_at_import(tree)) <= always, module
        assert needed(ast.walk(tree)) | needed_by_formats(tree) <= always | optional, module
    texts = "".join(path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py"))
    assert set(re.findall(r"heatsketch\[(\w+)\]", texts)) <= extras.keys()


def test_compiled_loops_stand_in_files_that_are_named_so():
    imported = {module: {m for _, m in own_imports(module, tree)} for module, tree in TREES.items()}
    compiled = {module for module, modules in imported.items() if "_compile" in modules}
    assert compiled == {module for module in TREES if module.endswith("loops")}


def test_compiled_loops_close_over_numbers_only():
    """A compiled function has another number in each process, so that the cache on disk misses."""
    loops = [importlib.import_module(f"heatsketch.{m}") for m in TREES if m.endswith("loops")]
    values = [value for module in loops for value in vars(module).values()]
    values += [v for value in values if isinstance(value, dict) for v in value.values()]
    closures = [v.py_func.__closure__ or () for v in values if isinstance(v, Dispatcher)]
    assert len(closures) > 20
    kept = {type(cell.cell_contents) for closure in closures for cell in closure}
    assert kept <= {type, tuple, int, float, np.float32, np.float64, np.int32, np.int64}


def test_limits_are_changed_by_their_table_alone():
    """So that a rename breaks one line, in `problems/limits.py`."""
    constant = re.compile(r"""setattr\([^)]*["'.]_?[A-Z][A-Z_]+["']""")
    tests = Path(__file__).parent
    found = [path for path in tests.rglob("*.py") if constant.search(path.read_text("utf-8"))]
    assert found == []
