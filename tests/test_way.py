"""How far a fit goes through the package: the fewer functions and files, the easier to follow.

The numbers are lowered with every step that shortens the way. Raise one only with a line in the
commit that names the stage of mathematics that was added.
"""

import ast
import sys
import threading
from pathlib import Path

import pytest

import heatsketch as hs

ROOT = Path(hs.__file__).parent
WAYS = {  # functions, of these with three code lines at most, and files
    "HeatSketch": (121, 29, 19),
    "HeatEmbedding": (206, 52, 24),
    "DiffusionMap": (145, 38, 21),
}


def entered(fit):
    """Return (file, name, first line) of the functions of the package that are entered."""
    seen = set()

    def look(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)):
            seen.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    sys.setprofile(look)
    threading.setprofile(look)
    try:
        fit()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {one for one in seen if not one[1].endswith(">")}  # lambdas and comprehensions


def code_lines(path):
    """Return the lines of code of each function by its first line, without its docstring."""
    found = {}
    for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            lines = {n for part in body for n in range(part.lineno, part.end_lineno + 1)}
            first = min(part.lineno for part in (node, *node.decorator_list))
            found[first] = 1 + len(lines)
    return found


@pytest.mark.parametrize("name", WAYS)
def test_a_fit_goes_no_longer_way_than_before(name):
    X = hs.datasets.digits()[0]
    make = getattr(hs, name)
    make(random_state=0).fit(X)  # what is made once
    model = make(random_state=0)
    way = entered(lambda: model.fit(X))
    lines = {path: code_lines(path) for path, *_ in way}
    short = sum(lines[path].get(first, 0) <= 3 for path, _, first in way)
    assert len(way) > 50  # else nothing was looked at
    found = len(way), short, len(lines)
    assert all(one <= most for one, most in zip(found, WAYS[name], strict=True)), found
