"""Every public name says its parameters, results, errors, cost and source, with an example."""

import ast
import dataclasses
import inspect
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from pkgutil import resolve_name as object_of

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils._testing import assert_docstring_consistency

import heatsketch
from heatsketch._messages import texts_from
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
    *("datasets.digits", "datasets.us_cities", "io.data_hash", "plot.categories", "progress"),
    "show_versions",
}


def short(name):
    return name.removeprefix("heatsketch.")


def is_record(value):
    """Say if a class is a record of fields, which its Attributes explain."""
    return inspect.isclass(value) and (dataclasses.is_dataclass(value) or hasattr(value, "_fields"))


def subclasses(names, of):
    return [n for n in names if inspect.isclass(object_of(n)) and issubclass(object_of(n), of)]


SOURCES = sorted(Path(heatsketch.__file__).parent.rglob("*.py"))
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


ARRAY = re.compile(r"\b(?:array|array-like|ndarray|sparse matrix)\b")
TEXTS = ("Sketching the heat kernel", "Linear and nonlinear", "Diffusion representation")
FROM_THE_TEXTS = {  # functions and other classes; every estimator is
    *("diffusion", "Diffusion", "gaussian_affinity", "initialization", "sketch", "Power", "Heat"),
    *("symmetric_normalize", "bistochastic_normalize", "markov_normalize", "MixtureKernel"),
    *("mixture.CholeskyMap", "ksum", "connecting_epsilon", "density_estimate", "distortion"),
    *("diffusion_distance", "metrics.diffusion_distortion", "metrics.row_distortion"),
    *("columns_for", "diffusion_discrepancy", "uncertainty.distance_interval"),
}
SCIKIT_LEARN = sorted(NAMES)
NORMALIZING = ("epsilon", "n_neighbors", "metric", "normalization", "alpha", "max_iter")
SHARED = {  # each docstring is whole: most texts come from one place, by `texts_from`
    NORMALIZING: ("HeatSketch", "DiffusionMap", "HeatEmbedding", "diffusion"),
    ("neighbors", "memory"): ("HeatSketch", "DiffusionMap", "HeatEmbedding"),
    ("metric",): ("gaussian_affinity", "ksum", "connecting_epsilon", "intrinsic_dimension"),
    ("n_components", "n_neighbors", "metric"): ("classical.Isomap", "classical.LandmarkIsomap"),
    ("perplexity", "init", "random_state"): ("classical.SNE", "classical.TSNE"),
    ("path", "ax"): ("plot.ksum_curve", "plot.time_curve", "plot.explained_variance"),
    ("labels", "title", "path", "whole"): ("plot.density", "plot.space"),
    ("adata", "copy"): ("anndata.heat_sketch", "anndata.diffusion_map", "anndata.pseudotime"),
}


@pytest.mark.parametrize("name", SCIKIT_LEARN)
def test_a_reader_is_told_where_to_look_next(name):
    """Each line of See Also is a public name, or one of scikit-learn, and a sentence."""
    lines = sections_of(object_of(name)).get("See Also", "").split("\n")
    entries = [line.split(" : ") for line in lines if line]
    methods = {f"{short(n)}.{method}" for n in CLASSES for method in methods_of(n)}
    known = {short(n) for n in public_names()} | methods
    assert 1 <= len(entries) <= 4
    assert [other for other, _ in entries if other not in known and other[:8] != "sklearn."] == []
    assert [says for _, says in entries if not (says[0].isupper() and says.endswith("."))] == []
    assert short(name) not in dict(entries)


@pytest.mark.parametrize("name", SCIKIT_LEARN)
def test_arrays_have_a_shape(name):
    sections = sections_of(object_of(name))
    for title in ("Parameters", "Attributes", "Returns"):
        heads = re.findall(r"^\S.*$", sections.get(title, ""), re.MULTILINE)
        kinds = [head.partition(" : ")[2] or head for head in heads]
        arrays = [kind for kind in kinds if ARRAY.search(kind)]
        of_any_shape = ("float or ndarray", "float, ndarray", "number, str or", "int or array-like")
        bare = [kind for kind in arrays if "of shape (" not in kind and "transformer" not in kind]
        assert [kind for kind in bare if not kind.startswith(of_any_shape)] == []
        assert [head for head in heads if re.search(r", default [^=]", head)] == []


@pytest.mark.parametrize("name", SCIKIT_LEARN)
def test_sources_are_cited_and_listed(name):
    """The titles of the texts are in References alone, and [n] there is [n]_ in the text."""
    value = object_of(name)
    text, sections = inspect.getdoc(value), sections_of(value)
    references = sections.get("References", "")
    listed = re.findall(r"^\.\. \[(\d+)\]", references, re.MULTILINE)
    assert listed == [str(i + 1) for i in range(len(listed))]
    assert set(re.findall(r"\[(\d+)\]_", text)) == set(listed)
    assert [title for title in TEXTS if title in text.replace(references or "-", "")] == []
    if subclasses([name], BaseEstimator) or short(name) in FROM_THE_TEXTS:
        assert listed


@pytest.mark.parametrize(("parameters", "names"), SHARED.items(), ids=lambda given: str(given[0]))
def test_a_shared_parameter_is_explained_alike(parameters, names):
    found = [object_of(f"heatsketch.{name}") for name in names]
    objects = [getattr(value, "__func__", value) for value in found]
    assert_docstring_consistency(objects, include_params=list(parameters))


ENTRY = re.compile(r"^(\S.*)\n((?: {4}.*\n?)+)", re.MULTILINE)  # of a section: its head and text


def entries_as_written():
    """Yield name, text of the entries of all docstrings of the package, as the source has them."""
    nodes = [node for path in SOURCES for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    for node in nodes:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found = ENTRY.findall(ast.get_docstring(node) or "")
            yield from ((head.partition(" : ")[0], " ".join(text.split())) for head, text in found)


def test_a_long_text_is_written_once():
    """Of two lines or more: twice at most, where a reader gains by having it at hand."""
    starts = Counter((name, text[:130]) for name, text in entries_as_written() if len(text) > 130)
    assert [entry for entry, count in starts.items() if count > 2] == []
    whole = Counter(entry for entry in entries_as_written() if len(entry[1]) > 200)
    assert [entry for entry, count in whole.items() if count > 1] == []


def test_a_text_is_shown_where_it_is_named():
    def home():
        """Do.

        Parameters
        ----------
        a : int
            The text {of
            a}.
        b : str, default="x"
            That of b.
        """

    home.__qualname__ = "home.it"

    @texts_from(home)
    def other():
        """Do.

        Parameters
        ----------
        b : bytes
            As in `home.it`. And more.
        a : int, default=1
            As in `home.it`.

        Raises
        ------
        ValueError
            As in `home.it`, but not the same.
        """

    shown = sections_of(other)
    assert shown["Parameters"].split("\n")[1:] == [
        "b : bytes",
        "    That of b.",
        "    And more.",
        "a : int, default=1",
        "    The text {of",
        "    a}.",
        "",
        "",
    ]
    assert "As in `home.it`, but not the same." in shown["Raises"]


def test_a_text_that_does_not_exist_is_an_error():
    def other():
        """Do.

        a : int
            As in `sections_of`.
        """

    with pytest.raises(KeyError, match="sections_of"):
        texts_from(sections_of)(other)


def test_without_docstrings_all_can_be_imported():
    code = "import heatsketch as hs; [getattr(hs, name) for name in hs.__all__]"
    subprocess.run([sys.executable, "-OO", "-c", code], check=True)


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
    assert [p.name for p in SOURCES if re.search(r"[a-z] -{4,} ?", p.read_text("utf-8"))] == []
