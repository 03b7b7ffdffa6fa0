"""Guards that only another machine, a damaged file, or numbers gone wrong would reach."""

import os

import numpy as np
import pytest

import heatsketch as hs
from heatsketch.cli import main
from heatsketch.mixture import cholesky
from problems.clouds import cloud


def test_a_folder_that_is_not_writable_is_named_before_the_work_begins(
    tmp_path, monkeypatch, capsys
):
    np.save(tmp_path / "x.npy", cloud(30, 3))
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    assert main(["embed", str(tmp_path / "x.npy"), "-o", str(tmp_path / "o.npy")]) == 1
    said = capsys.readouterr()
    assert "is not writable; choose another folder" in said.err
    assert "points" not in said.out


def test_an_affinity_of_too_high_a_rank_is_refused(monkeypatch):
    """Points far apart next to epsilon: the affinity is the identity, of full rank."""
    monkeypatch.setattr(cholesky, "_MAX_RANK", 8)
    kernel = hs.MixtureKernel([1.0], [[0.0]], [25.0], epsilon=1e-3)
    points = np.linspace(-5, 5, 9)[:, None]
    assert kernel.low_rank(points[:8]).factor.shape == (8, 8)
    with pytest.raises(ValueError, match="has a rank over 8; pass a larger epsilon or tol"):
        kernel.low_rank(points)
