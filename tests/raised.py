"""Which `raise` of the library does no test reach?

Run `pytest --cov=heatsketch --cov-report= -n auto` (pytest-cov), then `python tests/raised.py`.
Branches that cannot happen, and the abstract ones, say so themselves: `raise AssertionError` and
`raise NotImplementedError` do not count. What runs in a child process is not seen.
"""

import ast
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "heatsketch"
NOT_MESSAGES = {"AssertionError", "NotImplementedError", "AttributeError"}


def raises(path):
    """Yield the line and the exception of every `raise` with a message of its own."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = ast.unparse(node.exc.func)
            if name not in NOT_MESSAGES:
                yield node.lineno, name


def main():
    from coverage import CoverageData  # with pytest-cov

    data = CoverageData(".coverage")
    data.read()
    seen = missed = 0
    for path in sorted(SOURCES.rglob("*.py")):
        reached = set(data.lines(str(path)) or ())
        for line, name in raises(path):
            seen += line in reached
            if line not in reached:
                missed += 1
                print(f"{path.relative_to(SOURCES)}:{line}: {name}")
    print(f"{seen} of {seen + missed} messages are raised by a test")


if __name__ == "__main__":
    main()
