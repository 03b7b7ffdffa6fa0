"""The page of this folder: its code runs."""

from pathlib import Path

import numpy as np

from problems.pages import run_page

PAGE = Path(__file__).parents[1] / "README.md"


def test_code_of_the_page_makes_the_six_embeddings():
    names = run_page(PAGE, ["python"])
    assert set(names["Y"]) == set(names["log_L"]) == {"DMS", "DMB", "GPS", "GPB", "GPSBS", "GPSBB"}
    assert all(points.shape == (500, 8) for points in names["Y"].values())
    assert np.isfinite(list(names["log_L"].values())).all()
