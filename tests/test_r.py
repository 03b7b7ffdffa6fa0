"""The page for R: its code runs, where R, reticulate and a NumPy that reticulate knows are."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "r.md"


def run_r(code, folder):
    """Run a script, whose reticulate uses this Python."""
    (folder / "script.R").write_text(code, encoding="utf-8")
    environment = os.environ | {"RETICULATE_PYTHON": sys.executable}
    command = ["Rscript", "--vanilla", "script.R"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_the_code_of_the_page_runs(tmp_path):
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    needed = 'library(ggplot2); reticulate::import("numpy")$zeros(2L) + 1'
    tried = run_r(needed, tmp_path)
    if tried.returncode:
        pytest.skip(tried.stderr.strip())
    blocks = re.findall(r"^```r\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    checks = """
    stopifnot(identical(dim(Y), c(150L, 2L)), is.numeric(Y), file.exists("iris.png"))
    stopifnot(all.equal(model$transform(X[1:10, ]), Y[1:10, ]), identical(dim(Y_new), c(3L, 2L)))
    stopifnot(interval$low < interval$value, interval$value < interval$high)
    sparse <- hs$HeatEmbedding(random_state = 0L)$fit_transform(Matrix::Matrix(X, sparse = TRUE))
    stopifnot(all.equal(sparse, Y))
    missing <- try(hs$HeatEmbedding()$fit(replace(X, 1, NA)), silent = TRUE)
    stopifnot(grepl("NaN", missing), inherits(missing, "try-error"))
    """
    done = run_r("\n".join([*blocks, checks]), tmp_path)
    assert done.returncode == 0, done.stderr
