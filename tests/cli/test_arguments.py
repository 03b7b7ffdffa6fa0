"""What the command line takes: parameters by name, few options, and a quick start."""

import inspect
import re
import subprocess
import sys

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.cli import VERBS
from heatsketch.cli.arguments import parser_of, value
from heatsketch.comparison.run import ESTIMATORS, defaults

COMMON = ("help", "quiet", "force", "debug", "verbose", "parameters")
HEAVY = ("numpy", "scipy", "sklearn", "pyarrow", "numba", "pandas", "matplotlib")


def test_value_reads_numbers_words_and_lists():
    words = ("8", "0.5", "1e-3", "auto", "2,8", "True", "no", "none", "-1")
    found = [value(text) for text in words]
    assert repr(found) == "[8, 0.5, 0.001, 'auto', [2, 8], True, False, None, -1]"


def test_options_are_few():
    """All verbs together; those of all commands and parameters of methods are not counted."""
    (commands,) = (a for a in parser_of()._actions if a.dest == "verb")
    declared = {
        name: {a.dest for a in verb._actions if a.option_strings} - {*COMMON}
        for name, verb in commands.choices.items()
    }
    assert len(declared.pop("audit")) <= 15
    assert sum(map(len, declared.values())) <= 101


@pytest.mark.parametrize(
    "words",
    [
        *("--help", "embed --help", "embed tabel.csv -o out.csv", "distances tabel.csv --from a"),
        *("embed table.csv -o a.csv", "report table.csv -o a.csv", "embed a.csv -o table.csv"),
        *("embed table.csv -o b.csv --plot a.csv", "embed a.csv -o a.csv"),
    ],
)
def test_help_and_mistyped_names_wait_for_no_library(words, tmp_path):
    for name in ("table.csv", "a.csv"):
        (tmp_path / name).write_text("a,b\n1,2\n")
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
    elif "help" not in words:
        assert re.search(" exists; pass --force|a.csv is also the input; choose", done.stderr)


def test_methods_say_what_each_parameter_means(run):
    said = run("methods").out
    for name, make in ESTIMATORS.items():
        assert f"{name:22} {inspect.getdoc(make).splitlines()[0]}" in said
        values, _, meanings = run("methods", name).out.partition("\n\n")
        for parameter, default in defaults(make).items():
            assert f"{parameter}={default!r}" in " ".join(values.split())
            assert re.search(rf"^(\w+, )*{parameter}\b", meanings, re.MULTILINE), parameter
    assert "did you mean 'heat-embedding'?" in run("methods", "heat-embeding", code=2).err


@pytest.mark.parametrize("verb", VERBS)
def test_help_begins_with_what_must_be_given_and_ends_with_an_example(verb, run):
    module = __import__(f"heatsketch.cli.{verb}", fromlist=["run"])
    assert callable(module.run)
    text, _, example = " ".join(run(verb, "--help").out.split()).partition("Example: heatsketch ")
    usage = text[: text.index(" options: ")]
    assert not re.search(r"--(label|missing|plot)", usage)
    assert example.split()[0] == verb
    assert parser_of().parse_args(example.split()).verb == verb


def test_without_arguments_the_commands_are_listed(run):
    said = run(code=2).err
    assert all(f"\n    {verb}" in said for verb in VERBS)


def test_options_of_all_commands_stand_anywhere(circle, run):
    out = ("-o", "out.npy")
    run("embed", "--force", circle, *out)
    run("-q", "embed", circle, *out, code=1)
    run("--force", "embed", circle, "-q", *out)


def test_versions_say_what_results_depend_on(run, capsys):
    hs.show_versions()
    expected = capsys.readouterr().out
    lines = dict(line.split(maxsplit=1) for line in expected.splitlines())
    assert lines["heatsketch"] == hs.__version__
    assert lines["numpy"] == np.__version__
    assert sys.executable in lines["python"]
    assert lines["threads"].isdecimal()
    assert run("--version", "--verbose").out == expected
    assert run("--version").out == f"heatsketch {hs.__version__}\n"


def test_the_package_runs_as_a_module_and_finds_versions_where_nothing_is_imported():
    command = [sys.executable, "-m", "heatsketch", "--version", "--verbose"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.search(r"^BLAS .*\d", done.stdout, re.MULTILINE)
