"""The algebra of blocks, on the host and on a device, for which the processor stands in."""

from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from heatsketch.core.blocks import HOST
from heatsketch.device.blocks import DeviceBlocks

RNG = np.random.default_rng(0)
N = 2**14 + 5  # more than one tile of each primitive
X, Y = RNG.normal(size=(2, N, 3))
V = np.linalg.qr(RNG.normal(size=(N, 2)))[0]
W = RNG.normal(size=(3, 3))
ROUNDING = {np.float32: 1e-5, np.float64: 1e-12}

PLACES = {"host": HOST}
if find_spec("torch"):
    PLACES["device"] = DeviceBlocks("cpu")
every_place = pytest.mark.parametrize("blocks", PLACES.values(), ids=PLACES)
every_precision = pytest.mark.parametrize("dtype", ROUNDING)


def assert_close(found, expected, dtype):
    assert_allclose(found, expected, rtol=0, atol=ROUNDING[dtype] * np.abs(expected).max())


@every_place
@every_precision
@pytest.mark.parametrize("columns", [slice(None), 0], ids=["block", "vector"])
def test_combinations_and_projections(blocks, dtype, columns):
    given = X[:, columns], Y[:, columns]
    x, y = (blocks.native(values, dtype) for values in given)
    out, other = blocks.native(given[0].copy(), dtype), blocks.native(0 * given[0], dtype)
    blocks.combine((out, 0.5, [(2.0, y), (-1.0, x)]), (other, 1.0, [(3.0, y)]))
    assert_close(blocks.host(out), 2 * given[1] - 0.5 * given[0], dtype)
    assert_close(blocks.host(other), 3 * given[1], dtype)
    basis = blocks.native(V, dtype)
    projected = blocks.project(x, basis)
    assert_array_equal(blocks.host(x), given[0].astype(dtype))
    assert_close(blocks.host(projected), given[0] - V @ (V.T @ given[0]), dtype)
    assert blocks.project(x, basis, x) is x
    assert_array_equal(blocks.host(x), blocks.host(projected))


@every_place
@every_precision
def test_products_of_columns_come_to_the_host_in_double_precision(blocks, dtype):
    x, y = (blocks.native(values, dtype) for values in (X, Y))
    exact = X.astype(dtype).astype(float), Y.astype(dtype).astype(float)
    for found, expected in (
        (blocks.gram(x, y), exact[0].T @ exact[1]),
        (blocks.dots(x, y), np.sum(exact[0] * exact[1], axis=0)),
    ):
        assert isinstance(found, np.ndarray)
        assert_allclose(found, expected, rtol=0, atol=1e-10 * N**0.5)
    assert_close(blocks.norms(x), np.linalg.norm(X, axis=0), dtype)
    assert blocks.norm(x) == pytest.approx(np.linalg.norm(X), rel=ROUNDING[dtype])
    assert blocks.norm(x[:, 0]) == pytest.approx(np.linalg.norm(X[:, 0]), rel=ROUNDING[dtype])


@every_place
@every_precision
def test_blocks_are_rotated_and_weighted(blocks, dtype):
    x, s = blocks.native(X.copy(), dtype), blocks.native(Y[:, 0], dtype)
    assert_close(blocks.host(blocks.times_rows(s, x)), Y[:, :1] * X, dtype)
    assert_close(blocks.host(blocks.times_rows(s, x[:, 0])), Y[:, 0] * X[:, 0], dtype)
    blocks.rotate(x, W)
    assert_close(blocks.host(x), X @ W, dtype)


@every_place
@every_precision
@pytest.mark.parametrize("r", [0, 2])
def test_dependent_columns_are_completed_outside_of_the_directions(blocks, dtype, r):
    dependent = np.column_stack([X[:, 0], X[:, 1], X[:, 0]])
    dependent -= V[:, :r] @ (V[:, :r].T @ dependent)
    x, basis = blocks.native(dependent, dtype), blocks.native(V[:, :r], dtype)
    Q = blocks.host(blocks.orthonormal(x, basis)).astype(float)
    assert_close(Q.T @ Q, np.eye(3), dtype)
    assert np.abs(V[:, :r].T @ Q).max(initial=0.0) < ROUNDING[dtype]
    spanned = Q @ (Q.T @ dependent)
    assert_allclose(spanned, dependent, rtol=0, atol=100 * ROUNDING[dtype])
