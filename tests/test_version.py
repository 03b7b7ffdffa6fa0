"""The versions that a report of a fault needs."""

import re
import subprocess
import sys

import numpy as np

import heatsketch as hs
from heatsketch.cli import main


def test_versions_say_what_results_depend_on(capsys):
    hs.show_versions()
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["heatsketch"] == hs.__version__
    assert lines["numpy"] == np.__version__
    assert sys.executable in lines["python"]
    assert re.search(r"\d", lines["BLAS"])
    assert lines["threads"].isdecimal()


def test_the_command_line_prints_the_same(capsys):
    hs.show_versions()
    expected = capsys.readouterr().out
    assert main(["--version", "--verbose"]) == 0
    assert capsys.readouterr().out == expected
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"heatsketch {hs.__version__}\n"


def test_the_versions_are_found_where_nothing_else_is_imported():
    command = [sys.executable, "-m", "heatsketch", "--version", "--verbose"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.search(r"^BLAS .*\d", done.stdout, re.MULTILINE)
