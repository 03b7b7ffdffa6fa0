"""Every public name says its parameters, results, errors, cost and source, with an example."""

import dataclasses
import inspect
import re
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

import heatsketch
from test_docs import public_names

numpydoc = pytest.importorskip("numpydoc.validate")

# Of numpydoc's checks: the form of sections, one line that says what it is, every parameter and
# every result, and an example.
FORM = {
    *("GL05", "GL06", "GL07", "GL08", "GL09", "GL10", "SS01", "SS03", "SS04", "SS05", "SS06"),
    *("PR01", "PR02", "PR05", "PR06", "PR10", "RT01", "RT02", "RT05", "EX01"),
}
IN_ONE_LINE = {"PR01", "RT01", "EX01"}
WITHOUT_COST = ("anndata", "datasets", "io", "plot", "load_model")
WITHOUT_EXAMPLE = {"plot.new_figure", "plot.save"}
NEVER_RAISES = {
    *("datasets.digits", "io.data_hash", "plot.categories", "progress", "show_versions"),
}


def object_of(name):
    return resolve_name(":".join(name.rsplit(".", 1)))  # `plot.scatter` is a module, too


def short(name):
    return name.removeprefix("heatsketch.")


def is_record(value):
    """Say if a class is a record of fields, which its Attributes explain."""
    return inspect.isclass(value) and (dataclasses.is_dataclass(value) or hasattr(value, "_fields"))


def subclasses(names, of):
    return [n for n in names if inspect.isclass(object_of(n)) and issubclass(object_of(n), of)]


NAMES = sorted(public_names() - set(subclasses(public_names(), Exception)))
CLASSES = subclasses(NAMES, object)
FUNCTIONS = sorted(set(NAMES) - set(CLASSES))
RECORDS = [name for name in NAMES if is_record(object_of(name))]
WORKING = [
    name
    for name in NAMES
    if name not in RECORDS
    and short(name).split(".")[0] not in WITHOUT_COST
    and short(name) not in WITHOUT_EXAMPLE
]


def methods_of(name):
    """Return the names of public methods that the library itself gives to a class."""
    found = inspect.getmembers(object_of(name), callable)
    homes = {m: getattr(value, "__module__", None) or "" for m, value in found if m[0] != "_"}
    return [method for method, home in homes.items() if home.startswith("heatsketch")]


def sections_of(value):
    """Return title -> text of the sections of a docstring."""
    pieces = re.split(r"^(\w[\w ]*)\n-{3,}$", inspect.getdoc(value) or "", flags=re.M)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_numpydoc_finds_nothing_missing(name):
    left_out = {"PR01", "EX01"} if name in RECORDS else set()
    left_out |= {"EX01"} if short(name) in WITHOUT_EXAMPLE else set()
    found = numpydoc.validate(name)["errors"]
    assert [f"{code} {says}" for code, says in found if code in FORM - left_out] == []


RAISED = re.compile(r"\w+(Error|Warning)")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_it_raises(name):
    if short(name) not in NEVER_RAISES:
        assert RAISED.search(sections_of(object_of(name)).get("Raises", ""))


@pytest.mark.parametrize("name", CLASSES)
def test_methods_say_what_they_take_give_and_raise(name):
    """Of arguments and results one line says enough: points (n, d), coordinates (n, k)."""
    for method in methods_of(name):
        found = numpydoc.validate(f"{name}.{method}")["errors"]
        assert [f"{c} {method}: {says}" for c, says in found if c in FORM - IN_ONE_LINE] == []
        said = sections_of(getattr(object_of(name), method)).get("Raises", "")
        assert RAISED.search(said) or not subclasses([name], BaseEstimator), method


@pytest.mark.parametrize("name", [name for name in CLASSES if hasattr(object_of(name), "fit")])
def test_a_method_that_needs_a_fit_says_so_and_asks_for_it(name):
    """Whatever is neither `fit` nor a constructor, of a class that has a `fit`."""
    for method in set(methods_of(name)) - {"fit", "fit_transform"}:
        function = getattr(object_of(name), method)
        if inspect.isabstract(object_of(name)) or inspect.ismethod(function):
            continue
        assert "NotFittedError" in sections_of(function).get("Raises", ""), method
        call = getattr(object_of(name)(), method)
        wanted = [p for p in inspect.signature(call).parameters.values() if p.default is p.empty]
        with pytest.raises(NotFittedError):
            call(*[np.ones((3, 2)) for _ in wanted])


@pytest.mark.parametrize("name", WORKING)
def test_work_has_a_cost(name):
    assert re.search(r"\bcosts?\b|\bmemory\b", inspect.getdoc(object_of(name)), re.IGNORECASE)


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_explains_its_fields(name):
    value = object_of(name)
    fields = getattr(value, "_fields", None) or [
        field.name for field in dataclasses.fields(value) if field.init
    ]
    public = [field for field in fields if not field.startswith("_")]
    text = inspect.getdoc(value)
    assert [field for field in public if not re.search(rf"\b{field}\b", text)] == []


def test_headings_stand_above_their_rules():
    """Filled into one line with its text, a section would be none, and no check would miss it."""
    sources = Path(heatsketch.__file__).parent.rglob("*.py")
    assert [p.name for p in sources if re.search(r"[a-z] -{4,} ?", p.read_text("utf-8"))] == []
