"""Free layouts and places of new points on a device: the numbers of the host, and its quality."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import spearmanr

import heatsketch as hs
from heatsketch.core.blocks import HOST, OPENING, blocks_of
from heatsketch.device.blocks import Grid, blocks_on, device_csr
from heatsketch.layout import free
from heatsketch.layout.free import LogDistances, Neighbors, edges_of
from heatsketch.layout.maps import locations
from layout.test_free import draws, gradient_of, problem, terms_of, weights_of
from layout.test_free_loops import SHAPES, sums
from problems.clouds import cloud
from problems.devices import every_device, refuse_arrays

torch = pytest.importorskip("torch")

every_precision = pytest.mark.parametrize("dtype", [np.float32, np.float64])
dimensions = pytest.mark.parametrize("c", [2, 3])
TOO_LARGE = ("two dots", "heavy tails", "heavy tails, solid")
SMALL = {name: U for name, U in SHAPES.items() if name not in TOO_LARGE}
SMALL["blob, solid"] = SHAPES["blob, solid"] / 3  # whose grid would be too large
SMALL["disc in space"] = np.column_stack([SHAPES["disc"], 0.3 * SHAPES["blob, solid"][:, 0] / 8])


@pytest.fixture(autouse=True)
def _no_arrays(monkeypatch):
    refuse_arrays(monkeypatch)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # of many small steps, in which threads wait for each other
    yield
    torch.set_num_threads(threads)


@every_device
@every_precision
@pytest.mark.parametrize("name", SMALL)
def test_the_grid_is_within_a_thousandth(name, dtype, device):
    U, blocks = SMALL[name], blocks_on(device)
    force, total, size = sums(U)
    there = blocks.native(U + 5.0, dtype)
    found, found_total = Grid(blocks).repulsion(there)
    found = blocks.host(found)
    assert np.linalg.norm(found - force) <= 1e-3 * np.linalg.norm(size)
    assert found_total == pytest.approx(total, rel=2e-3)
    # No force from within moves the whole, whatever the grid.
    rounding = 1e-3 if dtype == np.float32 else 1e-12
    assert_allclose(found.sum(axis=0), 0, atol=rounding * np.abs(found).sum())


@every_device
@dimensions
def test_terms_with_masses_are_those_of_the_host(device, c):
    M, Y, pairs, logs = problem(400, c)
    mass = np.random.default_rng(1).uniform(0.1, 5, 400)
    blocks = blocks_on(device)
    m = device_csr(M, device)
    there = blocks.native(mass, np.float64)
    own = Neighbors(edges_of(M, float, mass), 0.3, 0.0, mass)
    other = Neighbors(edges_of(m, np.float64, there), 0.3, 0.0, there)
    by_grid = Neighbors(edges_of(m, np.float64, there), 0.3, 0.25, there)
    terms = (
        (own, other, 1e-10),
        (own, by_grid, 3e-3),
        (
            LogDistances(400, pairs, logs, HOST, float, mass),
            LogDistances(400, pairs, logs, blocks, np.float64, mass),
            1e-10,
        ),
    )
    for here, elsewhere, error in terms:
        Z = blocks.native(Y, np.float64)
        want, found = here.gradient(Y, 0.7), blocks.host(elsewhere.gradient(Z, 0.7))
        assert np.linalg.norm(found - want) <= error * np.linalg.norm(want)
        assert elsewhere.value(Z, 0.7) == pytest.approx(here.value(Y, 0.7), rel=error)


@dimensions
@pytest.mark.parametrize("sigma", [0.3, 3.0, 20.0, 40.0, 100.0])
def test_at_each_point_the_grid_is_within_two_hundredths_of_its_own_parts(sigma, c):
    U = sigma * np.random.default_rng(0).normal(size=(4000, c))
    found = Grid(blocks_on("cpu")).repulsion(torch.from_numpy(U))
    if found is None:  # the tree takes over
        assert (c, sigma) in [(3, 20.0), (3, 40.0), (3, 100.0)]
        return
    force, _, size = sums(U)
    error = np.linalg.norm(found[0].tolist() - force, axis=1)
    assert np.linalg.norm(error) <= 1.5e-3 * np.linalg.norm(size)
    assert (error <= 2e-2 * size).all()


def test_the_grid_gives_the_same_bits_on_the_processor_and_keeps_its_kernels():
    U, grid = blocks_on("cpu").native(SHAPES["disc"]), Grid(blocks_on("cpu"))
    one, other = grid.repulsion(U), grid.repulsion(U)
    kernels = grid._kernels
    again = grid.repulsion(U * 1.001)
    assert grid._kernels is kernels
    assert torch.equal(one[0], other[0])
    assert one[1] == other[1]
    assert not torch.equal(one[0], again[0])
    grid.repulsion(U * 2)
    assert grid._kernels is not kernels


@every_device
@pytest.mark.parametrize("name", ["disc", "blob, solid"])
def test_the_grid_takes_points_by_tiles_and_no_more_memory_than_there_is(name, device, monkeypatch):
    U, blocks = blocks_on(device).native(SMALL[name]), blocks_on(device)
    force, total = Grid(blocks).repulsion(U)
    monkeypatch.setattr(
        type(blocks), "step_bytes", 16 * 4 ** U.shape[1] * 300.0
    )  # 300 points at a time
    again, total_again = Grid(blocks).repulsion(U)
    atol = 1e-12 * float(force.abs().max())
    assert_allclose(blocks.host(again), blocks.host(force), rtol=0, atol=atol)
    assert total_again == pytest.approx(total, rel=1e-12)
    size = math.prod(force.shape)
    monkeypatch.setattr(type(blocks), "room", 8.0 * size)
    assert Grid(blocks).repulsion(U) is None


@every_device
@pytest.mark.parametrize("name", TOO_LARGE)
def test_where_the_box_is_too_large_the_tree_of_the_host_takes_over(name, device):
    Y = SHAPES[name]
    n = len(Y)
    M, pairs = sparse.eye(n, format="csr"), (np.arange(n - 1), np.arange(1, n))
    own, other = (terms_of(m, pairs, np.zeros(n - 1), 1.0) for m in at(M, device))
    there = blocks_on(device).native(Y)
    assert Grid(blocks_on(device)).repulsion(there) is None
    expected = gradient_of(own, Y, 1.0)
    found = blocks_on(device).host(gradient_of(other, there, 1.0))
    assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def at(M, device, dtype=float):
    """Return a matrix on the host, and on a device."""
    return M, device_csr(M.astype(dtype), device)


@every_device
@dimensions
@pytest.mark.parametrize("a", [0.0, 0.3])
def test_the_gradient_is_that_of_the_host(a, c, device):
    M, Y, pairs, targets = problem(400, c)
    M = M[:, np.random.default_rng(0).permutation(400)]  # not in order, and a loop where it falls
    own, other = (terms_of(m, pairs, targets, a, 0.0) for m in at(M, device))
    there, host = blocks_on(device).native(Y), blocks_on(device).host
    expected = gradient_of(own, Y, 0.2)
    size = np.abs(expected).max()
    assert_allclose(host(gradient_of(other, there, 0.2)), expected, rtol=0, atol=1e-11 * size)
    for one, same in zip(own, other, strict=True):
        assert same.value(there, 0.2) == pytest.approx(one.value(Y, 0.2), rel=1e-12)
    lengths = [
        blocks_of(at).median_length(at, terms[0].edges) for terms, at in ((own, Y), (other, there))
    ]
    assert lengths[1] == pytest.approx(lengths[0], rel=1e-6)
    other = terms_of(at(M, device)[1], pairs, targets, a, OPENING)
    assert_allclose(host(gradient_of(other, there, 0.2)), expected, rtol=0, atol=2e-3 * size)


@every_device
@every_precision
def test_a_layout_is_that_of_the_host(dtype, device):
    M, start, pairs, logs = problem(300)
    own, other = (free.free_layout(m, start, pairs, logs) for m in at(M, device, dtype))
    assert other.dtype == np.float64
    # The descent increases the rounding, until a few points end elsewhere.
    moved = np.abs(other - own).max(axis=1) / np.ptp(own)
    assert np.quantile(moved, 0.9) < 0.02
    few = [free.free_layout(m, start, pairs, logs, steps=10) for m in at(M, device, dtype)]
    atol = 1e-2 if dtype == np.float32 else 1e-6
    assert_allclose(few[1], few[0], rtol=0, atol=atol * np.ptp(own))


@every_device
def test_the_precision_of_a_layout_does_not_depend_on_what_is_allowed_elsewhere(device):
    M, start, pairs, logs = problem(300)
    there = device_csr(M.astype(np.float32), device)
    expected = free.free_layout(there, start, pairs, logs, steps=5)
    with torch.autocast(torch.device(device).type, dtype=torch.bfloat16):
        found = free.free_layout(there, start, pairs, logs, steps=5)
    # Sums in another order on a card change the last digits; bfloat16 has three.
    assert_allclose(found, expected, rtol=0, atol=1e-5 * np.ptp(expected))


@every_device
@every_precision
def test_by_the_grid_it_is_as_good_as_by_the_tree(dtype, device):
    M, start, pairs, logs = problem(1_500)
    own, other = (free.free_layout(m, start, pairs, logs) for m in at(M, device, dtype))
    edges = edges_of(M, float)
    kept = [
        spearmanr(np.linalg.norm(Y[pairs[0]] - Y[pairs[1]], axis=1), logs)[0] for Y in (own, other)
    ]
    assert kept[1] == pytest.approx(kept[0], abs=0.01)
    lengths = [blocks_of(edges).median_length(Y, edges) for Y in (own, other)]
    # From rotated starts they differ by as much: the descent increases rounding.
    assert lengths[1] == pytest.approx(lengths[0], rel=0.04)


@every_device
@pytest.mark.parametrize("name", ["digits", "roll"])
def test_pictures_are_as_good_as_those_of_the_host(name, device):
    X = (
        hs.datasets.digits()[0][:1_100]
        if name == "digits"
        else hs.datasets.swiss_roll(1_100, rng=0)[0]
    )
    own, other = (
        hs.HeatEmbedding(random_state=0, device=place).fit(X).quality_ for place in (None, device)
    )
    for measure in ("neighbors", "distances", "within", "crowding"):
        assert getattr(other, measure) == pytest.approx(getattr(own, measure), abs=0.015)


# New points


@every_device
@dimensions
@every_precision
def test_locations_are_those_of_the_host(dtype, c, device):
    Y, indices, weights = draws(0, c, m=200)
    weights[::7, 2] = np.inf
    indices[3::7] = indices[3::7, :1]
    rows = weights_of(weights.astype(dtype), indices, len(Y))
    own, other = (locations(Y, r, 0.7) for r in at(rows, device, dtype))
    assert_array_equal(other, own)


@every_device
@every_precision
@pytest.mark.parametrize("how", [{}, {"metric": "cosine"}, {"n_neighbors": 40}])
def test_new_points_have_the_places_of_the_host(how, dtype, device):
    X = cloud(300, 5).astype(dtype)
    X = np.concatenate([X, X[:5]])  # equal points
    new = X[:50] + dtype(0.1)
    model = hs.HeatEmbedding(random_state=0, **how).fit(X)
    Y = model.embedding_
    expected, known = model.transform(new), model.transform(X)
    model.set_params(device=device)
    scale = np.ptp(Y)
    atol = {np.float32: 1e-5, np.float64: 1e-10}[dtype] * scale
    assert_allclose(model.transform(new), expected, rtol=0, atol=atol)
    assert_array_equal(model.transform(X), known)
    assert_array_equal(known, Y)
    assert_array_equal(Y[300:], Y[:5])
    there = torch.from_numpy(new).to(device)
    assert_allclose(model.transform(there).cpu().numpy(), expected, rtol=0, atol=atol)
