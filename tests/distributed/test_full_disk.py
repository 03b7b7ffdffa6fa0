"""A full disk: it is said, nothing is half-written, and the run goes on when there is room."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from problems.clusters import points

if os.name != "posix":
    pytest.skip("the room is limited as on POSIX", allow_module_level=True)

_RUN = """
import json, resource, sys
from pathlib import Path
import heatsketch as hs

source, folder = map(Path, sys.argv[1:])
model, out = hs.HeatSketch(32, random_state=0), folder / "y.npy"

def run(**more):
    return hs.distributed.embed(source, out, model, fit_points=100, **more)

def leave(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

run()
expected, found = out.read_bytes(), []
for size in (150_000, 10_000):
    out.unlink()
    leave(size)
    try:
        run()
    except OSError as error:
        said = " ".join([str(error), *getattr(error, "__notes__", [])])
    left = [path.name for path in folder.rglob("*") if path.is_file()]
    leave(2**26)
    run(resume=True)
    found.append({"said": said, "left": left, "same": out.read_bytes() == expected})
print(json.dumps(found))
"""


@pytest.mark.slow
def test_a_file_that_finds_no_room_is_named(tmp_path):
    """A block of the output takes 192,128 bytes; the smaller limit stops the model."""
    source, folder = tmp_path / "x.npy", tmp_path / "disk"
    np.save(source, points())
    folder.mkdir()
    command = [sys.executable, "-W", "ignore", "-c", _RUN, str(source), str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    for found, goes_on in zip(json.loads(run.stdout), (True, False), strict=True):
        assert "could not be written (" in found["said"]
        assert "; make room on the disk, and try again." in found["said"]
        assert ("resume=True (--resume) goes on with it" in found["said"]) == goes_on
        assert ("run.json" in found["left"]) == goes_on
        assert [name for name in found["left"] if name.startswith(".heatsketch-")] == []
        assert "y.npy" not in found["left"]
        assert found["same"]
