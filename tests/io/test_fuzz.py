"""Damaged files of every kind are read or refused, never worse; see `tools/fuzz.py`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FUZZER = Path(__file__).parents[2] / "tools" / "fuzz.py"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="every case is a forked process")


@pytest.mark.slow
def test_many_damaged_files():
    command = [sys.executable, str(FUZZER), os.environ.get("HEATSKETCH_FUZZ", "300")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
