"""Every way that work goes to a card, on a stand-in: what goes there and back, and what waits.

What a card refuses fails here, too, because the stand-in refuses it. Numbers are those of torch's
processor device, up to rounding: sums depend on where in memory an array starts.
"""

import gc
import importlib
import pickle
import time
from functools import partial
from inspect import signature

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import heatsketch as hs
from heatsketch.cli import main
from heatsketch.device.blocks import DeviceCSR, device_csr
from heatsketch.layout import free
from heatsketch.layout.free import _PAIRS_OF_A_POINT
from heatsketch.layout.maps import step_graph
from heatsketch.neighbors import NeighborIndex
from layout.test_free import problem
from problems.clouds import cloud

torch = pytest.importorskip("torch")
stand_in = importlib.import_module("problems.card")

N = 160
X = cloud(N, 5) * np.array([4, 2, 0.3, 0.2, 0.1])
NEW = cloud(30, 5) + 0.1
K = hs.gaussian_affinity(X, 3.0)
GRAPH = hs.diffusion(X).operator.matrix
G = np.random.default_rng(0).normal(size=(N, 3))


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # of many small steps, in which threads wait for each other
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def card():
    with stand_in.card() as one:
        yield one


# The stand-in


@pytest.fixture
def both(card):
    """A tensor on the card, and one on the host."""
    return torch.arange(6.0, device="cuda"), torch.ones(6)


def test_a_tensor_says_where_it_is(both):
    x, y = both
    assert x.device == torch.device("cuda:0")
    assert x.is_cuda
    assert {x[None].T.device, x[2:].device, x.new_zeros(2).device} == {x.device}
    assert x.sort().values.device == x.device
    assert torch.stack([x, x]).is_cuda
    assert y.device == x.cpu().device == torch.device("cpu")
    assert x.to("cuda") is x
    assert x.add_(1) is x
    assert_array_equal(x.cpu(), np.arange(6) + 1)


@pytest.mark.parametrize(
    "work",
    [
        lambda x, y: x + y,
        lambda x, y: y * x,
        lambda x, y: x @ y,
        lambda x, y: torch.cat([x, y]),
        lambda x, y: torch.where(x > 2, x, y),
        lambda x, y: y[x.long()],
        lambda x, y: x[:2].add_(y[:2]),
        lambda x, y: x.__setitem__(torch.arange(2, device="cuda"), y[:2]),
        lambda x, y: x.index_add_(0, y.long(), x),
        lambda x, y: torch.arange(2, device="cuda:1"),
        lambda x, y: x.cumsum(0).minimum(y),
        lambda x, y: torch.cat([x, y[:1]]),
        lambda x, y: torch.linalg.vecdot(x, y),
        lambda x, y: x.new_zeros(6).scatter_(0, x.long(), y[0]),
    ],
)
def test_tensors_of_two_places_do_not_meet(work, both):
    with pytest.raises(RuntimeError):
        work(*both)


@pytest.mark.parametrize(
    "work", [lambda x: x.numpy(), np.asarray, lambda x: np.ones(6) * x, lambda x: x * np.ones(6)]
)
def test_numpy_gets_no_tensor_of_a_card(work, both):
    with pytest.raises(TypeError):
        work(both[0])


def test_what_a_card_allows(both, card):
    x, y = both
    assert (x + y[0]).is_cuda  # a number
    assert x[np.array([0, 2])].is_cuda
    assert x[y > 0].is_cuda
    x[:2] = y[:2]
    x.copy_(y)
    y.copy_(2 * x)
    assert_array_equal(y, 2)
    assert card.to_host.total() == 6 * 4
    assert card.to_card.total() == 2 * 8 + 6 + 2 * 4 + 6 * 4


@pytest.mark.parametrize(
    ("work", "count"),
    [
        (lambda x: float(x.sum()), 1),
        (lambda x: bool((x > 1).any()), 1),
        (lambda x: x[1].item(), 1),
        (lambda x: x.tolist(), 1),
        (lambda x: x.cpu(), 1),
        (lambda x: x.nonzero(), 1),
        (lambda x: x[x > 2], 1),
        (lambda x: x.unique(), 1),
        (lambda x: torch.equal(x, x), 1),
        (lambda x: x.repeat_interleave(x.long()), 1),
        (lambda x: x.repeat_interleave(x.long(), output_size=15), 0),
        (lambda x: x[x.long()], 0),
        (lambda x: torch.where(x > 2, x, 0.0), 0),
        (lambda x: x.sort(), 0),
        (lambda x: (x.shape, len(x), x[None].T, x[2:4]), 0),
        (lambda x: torch.zeros(7, device=x.device), 0),
    ],
)
def test_waits_are_counted(work, count, both, card):
    card.clear()
    work(both[0])
    assert card.waits.total() == count


def test_operations_and_bytes_are_counted(card):
    started = time.perf_counter() - card.seconds
    x = torch.from_numpy(np.zeros(1000)).to("cuda")
    assert (card.alive, card.to_card.total(), card.copies.total()) == (8000, 8000, 1)
    view = x.view(10, 100)[3:]
    assert (card.alive, card.operations.total()) == (8000, 0)
    y = 2 * x + x
    assert card.operations.total() == 2
    assert (card.alive, card.peak) == (16_000, 24_000)
    del x, y
    assert card.alive == 8000
    del view
    assert card.alive == 0
    assert 0 < card.seconds < time.perf_counter() - started


def test_the_memory_of_a_card_ends():
    with stand_in.card(room=1e6):
        first = torch.zeros(100_000, device="cuda")
        with pytest.raises(torch.OutOfMemoryError):
            torch.cat([first, first])
        assert torch.cuda.mem_get_info()[0] == 600_000
        with pytest.raises(MemoryError, match="pass points in float32"):
            hs.HeatSketch(3, device="cuda").fit(cloud(10_000, 20))  # whose graph does not fit


# Everything that takes a device, or a tensor on one


def arrays_of(found):
    """Return as a list of arrays all that has been found."""
    if isinstance(found, list | tuple):
        return [array for one in found for array in arrays_of(one)]
    found = found.host if isinstance(found, DeviceCSR) else found
    if isinstance(found, torch.Tensor):
        found = found.cpu()
        found = found if found.layout == torch.strided else found.to_dense()
    return [found.toarray() if sparse.issparse(found) else np.asarray(found)]


def fitted(make, device, there):
    model = make().set_params(random_state=0, device=device)
    return model.fit_transform(X), model.transform(NEW), model.transform(there(NEW))


def fitted_to_a_tensor(make, device, there):
    model = make().set_params(random_state=0, device=device)
    Y = model.fit_transform(there(X))
    assert Y.device.type == device
    return Y, model.transform(there(NEW)), model.transform(NEW)


def searched(device, there, recall=0.98):
    index, other = (NeighborIndex(X, recall=recall, device=d) for d in (device, None))
    tensors = index.query(there(NEW), 7)
    assert tensors.indices.device.type == device
    found = index.query(None, 9), index.query(NEW, 7), index.within(NEW, 1.0)
    order = index.order()
    measured = index.diagnostics(9)
    return (
        *(*found, tensors, other.query(there(NEW), 7), list(measured.values())),
        [] if order is None else order,
    )


def searched_in_cells(device, there, limits):
    limits(exact_points=50, device_cell_points=20)
    model = hs.HeatSketch(3, device=device, random_state=0)
    Y, index = model.fit_transform(X), NeighborIndex(X, recall=0.9, device=device)
    assert index.approximate
    return Y, model.transform(NEW), *searched(device, there, 0.9)


def of_a_diffusion(device, there):
    d = hs.diffusion(there(X), device=device)
    filters = [hs.Power(5), hs.Heat(30.5), hs.Accumulated(2, 20)]
    spectrum = hs.eigh(d, 4, rng=0)
    return (
        *(hs.sketch(d, filters, 3, rng=0), abs(spectrum.vectors), spectrum.values),
        hs.diffusion_distance(d, 3, pairs=(np.arange(20), np.arange(20, 40))),
        hs.heat_trace(d, [1, 4], rng=0).values,
        *(d.kernel_rows(NEW), step_graph(d), d.novelty(NEW), d.landed().operator.matrix),
    )


def of_many_points(device, there, limits):
    """By products, without the matrix as a whole."""
    limits(dense_eigenpairs=20, all_eigenpairs=20)
    d = hs.diffusion(there(X), device=device)
    trace = hs.heat_trace(d, [1, 4], rng=0)
    curve = hs.HeatEmbedding(layout="linear", random_state=0, device=device).fit(X).time_curve_
    sketches = hs.sketch(d, [hs.Power(90), hs.Heat(30.5)], 3, rng=0)
    return sketches, trace.values, trace.low, curve.directions, hs.eigh(d, 4, rng=0).values


def of_matrices(device, there):
    graph = there(GRAPH.toarray())
    given = there(K), there(K).float(), graph.to_sparse_csr(), graph.to_sparse()
    made = hs.symmetric_normalize, hs.markov_normalize, hs.bistochastic_normalize
    operators = [
        *(hs.TorchDense(K, device=device), hs.TorchDense(there(K))),
        *(hs.TorchSparse(GRAPH, device=device), hs.TorchSparse(graph.to_sparse_csr())),
        hs.TorchKernel(there(X), 3.0),
        hs.TorchKernel(X, np.linspace(1, 2, N), device=device),
        hs.symmetric_normalize(hs.TorchKernel(there(X), 3.0)),
    ]
    return (
        [normalize(matrix) for normalize in made for matrix in given],
        [A @ block for A in operators for block in (there(G), there(G[:, 0]), G)],
        [A.diagonal() for A in operators],
        [A.components() for A in operators[:4]],
        [hs.eigh(A, 3, rng=0).values for A in operators],
        [hs.sketch(A, hs.Power(3), 2, rng=0) for A in operators],
        [hs.sketch(matrix, hs.Power(2), 2, rng=0) for matrix in given],
    )


def stored(device, there, tmp_path):
    model = hs.HeatEmbedding(random_state=0, device=device).fit(there(X))
    hs.save_model(model, tmp_path / device)
    again, elsewhere = (hs.load_model(tmp_path / device) for _ in range(2))
    elsewhere.set_params(device=None)
    found = again.transform(NEW), elsewhere.transform(NEW), again.novelty(NEW)
    return *found, again.pseudotime(0).value


def commanded(device, there, tmp_path):
    np.save(tmp_path / "points.npy", X)
    np.save(tmp_path / "new.npy", NEW)
    files = {name: str(tmp_path / f"{device}-{name}") for name in ("Y.npy", "model", "new.npy")}
    words = ["embed", str(tmp_path / "points.npy"), "-o", files["Y.npy"], "--device", device]
    assert main([*words, "--random-state", "0", "--save-model", files["model"]]) == 0
    words = ["transform", files["model"], str(tmp_path / "new.npy"), "-o", files["new.npy"]]
    assert main(words) == 0
    return np.load(files["Y.npy"]), np.load(files["new.npy"])


MODELS = {
    "sketch": lambda: hs.HeatSketch(4),
    "two times": lambda: hs.HeatSketch(4, [2, 9], metric="cosine", normalization="symmetric"),
    "dense": lambda: hs.HeatSketch(4, affinity="dense", epsilon=3.0),
    "radius": lambda: hs.HeatSketch(
        4, affinity="radius", epsilon=3.0, normalization="bistochastic"
    ),
    "heat": lambda: hs.HeatSketch(4, 30.5, filter="heat", affinity="variable"),
    "map": lambda: hs.DiffusionMap(3),
    "embedding": lambda: hs.HeatEmbedding(),
    "in space": lambda: hs.HeatEmbedding(3),
    "linear": lambda: hs.HeatEmbedding(layout="linear"),
}
WORK = {name: partial(fitted, make) for name, make in MODELS.items()}
WORK |= {f"{name}, a tensor": partial(fitted_to_a_tensor, make) for name, make in MODELS.items()}
WORK |= {
    one.__name__: one
    for one in (searched, searched_in_cells, of_a_diffusion, of_many_points, of_matrices)
}
WORK |= {one.__name__: one for one in (stored, commanded)}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_all_that_takes_a_device_runs_on_a_card(work, card, short_search, limits, tmp_path):
    limits(layout_steps=20)  # more would increase the rounding
    needs = {"limits": limits, "tmp_path": tmp_path}
    needs = {name: one for name, one in needs.items() if name in signature(work).parameters}
    expected = arrays_of(work("cpu", torch.from_numpy, **needs))
    assert not card.operations
    found = arrays_of(work("cuda", lambda x: torch.from_numpy(x).to("cuda"), **needs))
    assert card.operations
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        rounding = 1e-5 if one.dtype == np.float32 else 1e-8
        size = np.abs(other).max(initial=0)
        assert_allclose(one, other, rtol=0, atol=rounding * size)


# What goes there and back, and what waits

LARGE = cloud(1500, 5)  # more than the dense matrix solves, and than sums over all pairs are for


def test_a_fit_brings_the_model_to_the_host_once_and_leaves_nothing_behind(card):
    model = hs.HeatSketch(8, random_state=0, device="cuda").fit(LARGE)
    gc.collect()
    assert card.alive == 0
    size = len(pickle.dumps(model))
    assert 0.3 * size < card.to_host.total() < size
    there = torch.from_numpy(LARGE).to("cuda")
    held = card.alive
    card.clear()
    hs.HeatSketch(8, random_state=0).fit_transform(there)
    gc.collect()
    assert card.alive == held
    assert card.to_host.total() < size + there.nbytes


def traffic(card, work):
    """Return waits, copies and bytes in both directions of some work."""
    card.clear()
    work()
    totals = card.waits, card.copies, card.to_host, card.to_card
    return tuple(one.total() for one in totals)


def test_more_products_are_no_more_copies_and_waits(card):
    made = [hs.HeatSketch(4, t, random_state=0, device="cuda") for t in (60, 120)]
    assert len({traffic(card, lambda m=model: m.fit(LARGE)) for model in made}) == 1
    d = hs.diffusion(LARGE, device="cuda")
    hs.sketch(d, hs.Power(60), 4, rng=0)  # what the operator knows of itself
    few, many = (
        traffic(card, lambda f=f: hs.sketch(d, f, 4, rng=0)) for f in (hs.Power(60), hs.Power(120))
    )
    assert few == many
    few, many = (
        traffic(card, lambda f=f: hs.sketch(d, f, 4, rng=0)) for f in (hs.Heat(9.5), hs.Heat(90.5))
    )
    assert few == many


def test_the_graph_of_an_embedding_does_not_go_there_again(card, short_search):
    model = hs.HeatEmbedding(random_state=0, device="cuda")
    model.fit(LARGE)
    sent = sum(size for place, size in card.to_card.items() if place.endswith("device_csr"))
    most = 2 * 8 * _PAIRS_OF_A_POINT * len(LARGE)  # distances of pairs, both ways
    assert 0.99 * most < sent <= most  # a landmark has no pair with itself


def test_eigenpairs_bring_small_matrices_to_the_host(card):
    d = hs.diffusion(LARGE, device="cuda")
    card.clear()
    hs.eigh(d, 8, rng=0)
    assert max(card.sizes) < 8 * 40**2  # as wide as a block
    products = sum(count for place, count in card.operations.items() if "_matmul" in place)
    assert card.waits.total() < 60 + products  # the ends, and some for each round of products
    # The start, and matrices as wide as a block.
    assert card.to_card.total() < 8 * (len(LARGE) * 42 + products * 40**2)


@pytest.mark.parametrize("n", [300, 1500])  # exact sums, and the grid
def test_a_step_of_the_layout_waits_for_four_numbers(card, n):
    M, start, pairs, logs = problem(n)
    M = device_csr(M, "cuda")
    few, many = (
        traffic(card, lambda s=s: free.free_layout(M, start, pairs, logs, steps=s))
        for s in (10, 34)
    )
    waits, _, down, up = np.subtract(many, few)
    assert waits <= 24 * 4.2  # the length of an edge is measured six times
    assert down <= 24 * 50
    assert up <= 24 * 60 * 100  # no points; axes of a grid, where it grows


@pytest.mark.parametrize(
    "make", [lambda: hs.HeatSketch(4), lambda: hs.HeatEmbedding()], ids=["sketch", "embedding"]
)
def test_more_new_points_are_no_more_waits(card, short_search, make):
    model = make().set_params(random_state=0).fit(LARGE[:700]).set_params(device="cuda")
    new = LARGE[700:] + 0.01
    model.transform(new[:2])  # the index goes there once
    few, many = (traffic(card, lambda m=m: model.transform(new[:m])) for m in (100, 800))
    assert card.operations
    assert many[0] <= few[0] + 5
    assert many[3] - few[3] <= 700 * (new[0].nbytes + 8)  # and the order of some
    # Coordinates, and what the host checks; in a picture the neighbours and their weights.
    near = 15 * (8 + 4) if isinstance(model, hs.HeatEmbedding) else 0
    assert many[2] - few[2] <= 700 * (8 * (4 + 2) + near)


def test_the_search_leaves_its_results_on_the_card(card, limits):
    limits(exact_points=300, device_cell_points=40)
    index = NeighborIndex(LARGE, device="cuda")
    search = index.search
    search.query(None, 9)
    card.clear()
    found = search.query(None, 9)
    assert found.distances.is_cuda
    assert card.to_host.total() < 40 * len(LARGE) / 9
