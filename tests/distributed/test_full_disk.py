"""A full disk: it is said, nothing is half-written, and the run goes on when there is room."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from problems.clusters import points

if os.name != "posix":
    pytest.skip("the room is limited as on POSIX", allow_module_level=True)
pytestmark = pytest.mark.slow

_RUN = """
import json, os, resource, subprocess, sys
from pathlib import Path
import heatsketch as hs

way, size = sys.argv[1], int(sys.argv[2])
source, folder = map(Path, sys.argv[3:])
model, options = hs.HeatSketch(32, random_state=0), {"fit_points": 100}
if way == "file system":
    subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)


def leave(size):
    if way == "limit":
        return resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    found = os.statvfs(folder)
    used = (found.f_blocks - found.f_bfree) * found.f_frsize
    subprocess.run(["mount", "-o", f"remount,size={used + size}", folder], check=True)


def run(**more):
    return hs.distributed.embed(source, out, model, **options, **more)


out = folder / "y.npy"
run()
expected = out.read_bytes()
out.unlink()
leave(size)
try:
    run()
except OSError as error:
    said = " ".join([str(error), *getattr(error, "__notes__", [])])
left = [path.name for path in folder.rglob("*") if path.is_file()]
leave(2**26)
run(resume=True)
print(json.dumps({"said": said, "left": left, "same": out.read_bytes() == expected}))
"""


def on(way):
    """Return the command that may mount a file system of its own."""
    if way == "limit":
        return []
    command = ["unshare", "--user", "--map-root-user", "--mount"]
    test = [*command, "mount", "-t", "tmpfs", "none", "/mnt"]
    if not shutil.which("unshare") or subprocess.run(test, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    return command


@pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")
@pytest.mark.parametrize(
    ("way", "size", "goes_on"),
    [
        ("file system", 150_000, True),  # full of blocks of the output
        ("limit", 30_000, False),  # of the model
    ],
)
def test_a_full_disk(way, size, goes_on, tmp_path):
    source, disk = tmp_path / "x.npy", tmp_path / "disk"
    np.save(source, points())
    disk.mkdir()
    command = [*on(way), sys.executable, "-W", "ignore", "-c", _RUN, way, str(size)]
    command += [str(source), str(disk)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert "could not be written (" in found["said"]
    assert "; make room on the disk, and try again." in found["said"]
    assert ("resume=True (--resume) goes on with it" in found["said"]) == goes_on
    assert ("run.json" in found["left"]) == goes_on
    assert [name for name in found["left"] if name.startswith(".heatsketch-")] == []
    assert "y.npy" not in found["left"]
    assert found["same"]
