"""Docstrings that read well in a terminal, as reStructuredText.

In a docstring |x| is an absolute value, `name` is code, and embedding_ is an attribute. Sphinx
takes the first for a substitution, the second for a reference whatever it says, and the third for
a link. Code that is a public name becomes a reference, all other code stays code.
"""

import functools
import inspect
import re
from pathlib import Path

REFERENCE = Path(__file__).parents[1] / "reference.rst"
HEADED = {"Parameters", "Returns", "Yields", "Raises", "Warns", "Attributes", "Other Parameters"}
UNTOUCHED = {"Examples"}
OF_ESTIMATORS = {"fit", "neighbors"}  # alone a method and a parameter, not functions of those names
CODE = re.compile(r"(``.+?``|(?<!`)`[^`]+`(?!`))")
EMPHASIS = re.compile(r"(\*\*?[A-Za-z][^*]*[A-Za-z0-9.]\*\*?)(?!\w)")


def setup(app):
    """Run before numpydoc, which makes reStructuredText of sections."""
    app.connect("autodoc-process-docstring", make_plain, priority=100)
    app.connect("autodoc-process-signature", signature_of_init)
    app.connect("autodoc-skip-member", skip_foreign)
    return {"parallel_read_safe": True}


def skip_foreign(app, what, name, obj, skip, options):
    """Leave out what scikit-learn and NamedTuple put into a class: it is documented there."""
    if name.startswith("_"):
        return True
    if isinstance(obj, property | functools.cached_property):
        return None if obj.__doc__ else True
    function = getattr(obj, "__func__", obj)
    ours = (getattr(function, "__module__", None) or "").startswith("heatsketch")
    return None if callable(function) and ours else True


def signature_of_init(app, what, name, obj, options, signature, returns):
    """Show what makes an estimator, and not `Embedder.__new__`, which Sphinx finds before it."""
    if what != "class" or not hasattr(obj, "fit_transform"):
        return None
    bare = [p.replace(annotation=p.empty) for p in inspect.signature(obj).parameters.values()]
    return str(inspect.Signature(bare)), None


def make_plain(app, what, name, obj, options, lines):
    """Escape what only looks like markup, in place."""
    lines[:] = plain(lines)


def plain(lines):
    """Return the lines of a numpydoc docstring with their plain text escaped."""
    section, done, prose = "", [], []

    def flush():
        done.extend(escaped("\n".join(prose)).split("\n") if prose else [])
        prose.clear()

    lines = "\n".join(lines).split("\n")
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        title = bool(line) and set(below) == {"-"} and len(below) >= len(line)
        section = line if title else section
        head_of_field = section in HEADED and not line.startswith(" ")
        if section == "See Also" and " : " in line:  # numpydoc makes links of full names
            name, _, says = line.partition(" : ")
            line = f"{public_names().get(name, name)} : {says}"
        if title or not line.strip("- ") or section in UNTOUCHED or head_of_field:
            flush()
            head, colon, kind = line.partition(" : ")
            done.append(head + colon + escaped(kind) if head_of_field else line)
        else:
            prose.append(line)
    flush()
    return done


def escaped(text):
    """Return prose in which code is code and nothing else is markup, but *titles*."""
    pieces = CODE.split(text)
    return "".join(_code(p) if i % 2 else _text(p) for i, p in enumerate(pieces))


def _code(piece):
    name = piece.strip("`").strip()
    target = public_names().get(name) if not piece.startswith("``") else None
    return f":py:obj:`~{target}`" if target else f"``{name}``"


def _text(text):
    pieces = EMPHASIS.split(text)
    return "".join(p if i % 2 else _marks(p) for i, p in enumerate(pieces))


def _marks(text):
    text = text.replace("\\", "\\\\").replace("|", r"\|").replace("*", r"\*")
    return re.sub(r"(?<=\w)_(?!\w)", r"\_", text)


@functools.cache
def public_names():
    """Return the full name of what a short name in a docstring stands for."""
    names = {}
    page = REFERENCE.read_text(encoding="utf-8")
    for full in re.findall(r"^   (heatsketch\.[\w.]+)$", page, re.MULTILINE):
        parts = full.split(".")
        for start in range(len(parts)):
            short = ".".join(parts[start:])
            if short not in OF_ESTIMATORS:
                names.setdefault(short, full)
        names.setdefault(".".join(["hs", *parts[1:]]), full)
    return names
