"""Damaged files of every kind are read or refused, never worse; see `fuzz`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FUZZER = Path(__file__).with_name("fuzz.py")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="every case is a forked process")


def fuzz(*args):
    command = [sys.executable, str(FUZZER), *map(str, args)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_five_damaged_files_of_each_kind():
    fuzz(75)


@pytest.mark.slow
def test_many_damaged_files():
    fuzz(os.environ.get("HEATSKETCH_FUZZ", 300))
