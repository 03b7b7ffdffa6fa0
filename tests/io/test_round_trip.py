"""Every estimator through a file into a fresh process: the same bits of all that it says."""

import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
from scipy import sparse

import heatsketch as hs
from heatsketch.comparison.run import ESTIMATORS

sys.path.insert(0, str(Path(__file__).parent))
import fitted


def same(one, other):
    """Say whether two results have the same types and bits."""
    return joblib.hash(one) == joblib.hash(other)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder of models, and what they say in a fresh process."""
    folder = tmp_path_factory.mktemp("models")
    results = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model, new in fitted.fitted():
            hs.save_model(model, folder / f"{name}.model")
            (folder / f"{name}.new").write_bytes(pickle.dumps(new))
            said = pickle.dumps(fitted.said(model, new))  # in which arrays have no strides
            results[name] = model, pickle.loads(said)
    command = [sys.executable, fitted.__file__, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    return folder, results


def test_every_estimator_says_the_same_in_a_fresh_process(folder):
    folder, results = folder
    wrong = []
    for name, (_, expected) in results.items():
        found = pickle.loads((folder / f"{name}.said").read_bytes())
        left_out = {"embedding_", "stationary_"} if name.startswith("MixtureD") else set()
        expected = {key: item for key, item in expected.items() if key not in left_out}
        missing = {*expected} ^ {*found}
        differing = [key for key in {*expected} & {*found} if not same(expected[key], found[key])]
        if missing or differing:
            wrong.append(f"{name}: missing {sorted(missing)}, differing {sorted(differing)}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.filterwarnings("ignore")
def test_points_that_are_changed_after_a_fit_change_nothing_that_a_model_says(folder):
    wrong = []
    for name, (model, own, new) in (fitted.sketches() | fitted.classical_models()).items():
        if isinstance(own, hs.Diffusion):
            continue
        own = own.copy()
        model = fitted.fit(model, own)
        values = own.data if sparse.issparse(own) else own
        values[...] = 7 * values[::-1] + 1
        found, expected = pickle.loads(pickle.dumps(fitted.said(model, new))), folder[1][name][1]
        keys = expected.keys() - {"diagnostics_", "seconds_"}  # the first has seconds, too
        wrong += [f"{name}: {key}" for key in keys if not same(expected[key], found[key])]
    assert wrong == []


def test_every_estimator_is_tried(folder):
    tried = {type(model).__name__ for model, _ in folder[1].values()}
    public = [getattr(part, name) for part in (hs, hs.classical) for name in part.__all__]
    assert {item.__name__ for item in public if hasattr(item, "get_params")} == tried
    assert {kind.__name__ for kind in ESTIMATORS.values()} <= tried


def test_a_model_saved_again_is_the_same_file(folder, tmp_path):
    folder, results = folder
    for name in results:
        hs.save_model(hs.load_model(folder / f"{name}.model"), tmp_path / name)
        first, again = (folder / f"{name}.model").read_bytes(), (tmp_path / name).read_bytes()
        if not name.startswith("MixtureD"):  # whose file does not say how many points there were
            assert first == again, name


@pytest.mark.slow
def test_a_model_of_many_points_and_approximate_neighbours_says_the_same(tmp_path):
    """Cells and the order of vertices are computed again; products are compiled."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 20)).astype(np.float32)
    model = hs.HeatSketch(4, random_state=0).fit(X[::-1])
    assert "recall" in model.diagnostics_
    hs.save_model(model, tmp_path / "m")
    again, new = hs.load_model(tmp_path / "m"), X[:50] + np.float32(0.1)
    assert same(again.transform(new), model.transform(new))
    assert same(again.novelty(new), model.novelty(new))
