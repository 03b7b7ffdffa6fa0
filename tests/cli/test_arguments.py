"""What the command line takes: parameters by name, few options, and a quick start."""

import inspect
import subprocess
import sys

import pytest

from heatsketch.cli import main
from heatsketch.cli.arguments import VERBS, parser_of, value
from heatsketch.cli.methods import meanings_of
from heatsketch.comparison.methods import ESTIMATORS, defaults

HEAVY = ("numpy", "scipy", "sklearn", "pyarrow", "numba", "pandas", "matplotlib")


def verbs():
    (commands,) = (a for a in parser_of()._actions if a.dest == "verb")
    return commands.choices


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("8", 8),
        ("0.5", 0.5),
        ("1e-3", 1e-3),
        ("auto", "auto"),
        ("2,8", [2, 8]),
        ("True", True),
        ("none", None),
        ("-1", -1),
    ],
)
def test_value_reads_numbers_words_and_lists(text, wanted):
    assert value(text) == wanted
    assert type(value(text)) is type(wanted)


def test_options_are_few():
    """All verbs together; the parameters of methods are one, `-p`, as are the names of `--read`."""
    declared = [a.dest for v in verbs().values() for a in v._actions if a.option_strings]
    assert len([name for name in declared if name != "help"]) <= 100


@pytest.mark.parametrize(
    "words",
    ["--help", "embed --help", "embed tabel.csv -o out.csv", "distances tabel.csv --from a"],
)
def test_help_and_mistyped_names_wait_for_no_library(words, tmp_path):
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    code = f"""if True:
        import sys
        from heatsketch.cli import main
        main({words.split()!r})
        print([name for name in {HEAVY!r} if name in sys.modules])
    """
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    if "tabel" in words:
        assert done.stderr == (
            "heatsketch: error: tabel.csv does not exist; did you mean 'table.csv'?\n"
        )


@pytest.mark.parametrize("method", ESTIMATORS)
def test_methods_say_what_each_parameter_means(method, capsys):
    assert main(["methods", method]) == 0
    said = capsys.readouterr().out
    known = meanings_of(ESTIMATORS[method])
    for name, default in defaults(ESTIMATORS[method]).items():
        assert f"{name}={default!r}" in said
        assert any(known[name]), name


def test_methods_are_listed(capsys):
    assert main(["methods"]) == 0
    said = capsys.readouterr().out
    for name, make in ESTIMATORS.items():
        assert f"{name:22} {inspect.getdoc(make).splitlines()[0]}" in said
    assert main(["methods", "heat-embeding"]) == 2
    assert "did you mean 'heat-embedding'?" in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_a_module_with_run(verb):
    module = __import__(f"heatsketch.cli.{verb}", fromlist=["run"])
    assert callable(module.run)
