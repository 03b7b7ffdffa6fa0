"""Workers, schedulers and clients that end before the run does: the output has the same bytes."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import heatsketch as hs
from heatsketch.distributed import embed
from heatsketch.distributed.cluster import connect
from heatsketch.distributed.state import State
from problems.clusters import BLOCKS, OPTIONS, SAMPLE, SKETCH, N, own_cluster, own_scheduler, spoil

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("dask.distributed")
psutil = pytest.importorskip("psutil")
if os.name != "posix":
    pytest.skip("processes are ended by signals", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")


def test_a_killed_worker_changes_no_byte(tmp_path, source, expected):
    """A block kills the worker that maps it first; the other one maps what is left."""

    def kill_once(own, number):
        if not own.state.part(number).exists():
            with (tmp_path / "mapped").open("a") as log:
                log.write(f"{number}\n")
        killed = tmp_path / f"killed-{number}"
        if number == 4 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    with own_cluster() as client:
        spoil(client, kill_once)
        done = embed(source, tmp_path / "out.npy", SKETCH, cluster=client, **OPTIONS)
    assert done.output.read_bytes() == expected
    assert len((tmp_path / "mapped").read_text().split()) == BLOCKS + 1  # no other is lost


@pytest.mark.slow
def test_a_block_that_kills_workers_is_named(tmp_path, source, expected):
    def kill(own, number):
        if number == 7:
            os.kill(os.getpid(), signal.SIGKILL)

    out = tmp_path / "out.npy"
    with own_cluster(failures=1) as client:
        spoil(client, kill)
        with pytest.raises(
            ChildProcessError, match=r"block 7 \(rows 700 to 799 of .*ended 2 workers"
        ):
            embed(source, out, SKETCH, cluster=client, **OPTIONS)
    assert not out.exists()
    embed(source, out, SKETCH, resume=True, **OPTIONS)
    assert out.read_bytes() == expected


@pytest.mark.slow
def test_a_worker_that_leaves_is_not_missed(tmp_path, source, expected):
    def slowly(own, number):
        time.sleep(0.05)

    with own_cluster() as client:
        spoil(client, slowly)
        parts = State.of(tmp_path / "out.npy").parts

        def retire():
            while not list(parts.glob("part-*")):
                time.sleep(0.01)
            client.retire_workers([sorted(client.scheduler_info()["workers"])[0]])

        retiring = threading.Thread(target=retire)
        retiring.start()
        done = embed(source, tmp_path / "out.npy", SKETCH, cluster=client, **OPTIONS)
        retiring.join()
    assert done.output.read_bytes() == expected


@pytest.mark.slow
def test_a_killed_scheduler_is_named_and_the_run_goes_on(tmp_path, source, expected, mapped):
    def slowly(own, number):
        time.sleep(0.2)

    out = tmp_path / "out.npy"
    with own_scheduler(tmp_path / "scheduler.json") as (scheduler, address):
        parts = State.of(out).parts

        def kill():
            while not list(parts.glob("part-*")):
                time.sleep(0.01)
            scheduler.kill()

        with (
            connect(address) as client,
            dask.config.set({"distributed.comm.timeouts.connect": "3s"}),
        ):
            spoil(client, slowly)
            killing = threading.Thread(target=kill)
            killing.start()
            with pytest.raises(ConnectionError, match="the scheduler has ended"):
                embed(source, out, SKETCH, cluster=client, **OPTIONS)
            killing.join()
    left = len(list(parts.glob("part-*")))
    embed(source, out, SKETCH, resume=True, **OPTIONS)
    assert len(mapped) == BLOCKS - left
    assert out.read_bytes() == expected


_RUN = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in background
from heatsketch import distributed
from heatsketch.cli import main
distributed.embed.__kwdefaults__["block_rows"] = 2  # many blocks: the run outlasts the look at it
source, out = sys.argv[1:]
sys.exit(main(["embed", source, "-o", out, "--method", "heat-sketch", "--n-components", "3",
               "--fit-points", "300", "--cluster", "local:2", "--resume", "-q"]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_process_and_goes_on(
    sent, source, tmp_path, expected, mapped
):
    out = tmp_path / "out.npy"
    process = subprocess.Popen(
        [sys.executable, "-c", _RUN, str(source), str(out)],
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    state = State.of(out)
    while process.poll() is None and len(list(state.parts.glob("part-*"))) < 3:
        time.sleep(0.005)
    assert process.poll() is None, process.communicate()[1]
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 2
    if sent == signal.SIGINT:
        os.killpg(process.pid, sent)  # as a terminal does
    else:
        process.send_signal(sent)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == (130 if sent == signal.SIGINT else -sent), said
    assert psutil.wait_procs(children, timeout=20)[1] == []
    assert not out.exists()
    left = len(list(state.parts.glob("part-*")))
    given = {"fit_points": SAMPLE, "block_rows": 2, "resume": True}
    embed(source, out, hs.HeatSketch(3, random_state=0), **given)
    assert len(mapped) == N // 2 - left
    assert out.read_bytes() == expected
    assert list(Path(tmp_path).glob("**/.heatsketch-*")) == []
