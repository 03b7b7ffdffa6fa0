"""Data sets with known coordinates: curves, surfaces, clouds, and handwritten digits.

Every function returns `(X, coordinates)`: the points, and the coordinates or the label of each.
"""

import math
from collections.abc import Callable

import numpy as np

from heatsketch._arrays import Array
from heatsketch._checks import check_choice, check_number

Seed = int | np.random.Generator | None


def digits() -> tuple[Array, Array]:
    """Return scikit-learn's 1797 handwritten digits of 8 × 8 pixels.

    Returns
    -------
    X : ndarray of shape (1797, 64)
        Grey values 0 to 16.
    label : ndarray of shape (1797,)
        The digit, 0 to 9.

    See Also
    --------
    datasets.gaussian_clouds : Draw points from normal clouds.
    io.read_table : Read points, ids and labels from a file.

    Examples
    --------
    >>> from heatsketch import datasets
    >>> X, label = datasets.digits()
    >>> X.shape
    (1797, 64)
    """
    from sklearn.datasets import load_digits

    X, label = load_digits(return_X_y=True)
    return np.asarray(X, dtype=np.float64), label


def circle(n: int = 300, *, equispaced: bool = False, rng: Seed = None) -> tuple[Array, Array]:
    """Draw points on the unit circle.

    Parameters
    ----------
    n : int >= 1, default=300
        Number of points.
    equispaced : bool, default=False
        Put the points at the angles 2πi/n instead of at random ones.
    rng : int, Generator or None, default=None
        Seed or source of the random angles.

    Returns
    -------
    X : ndarray of shape (n, 2)
        The points.
    angle : ndarray of shape (n,)
        Their angles, in [0, 2π).

    Raises
    ------
    ValueError
        A number out of range.

    See Also
    --------
    datasets.circle_with_outliers : Draw points on a circle, with two outliers.
    datasets.stretched_torus : Draw points on a flat torus.

    Examples
    --------
    >>> from heatsketch import datasets
    >>> X, angle = datasets.circle(4, equispaced=True)
    >>> X.round(12) + 0.0
    array([[ 1.,  0.],
           [ 0.,  1.],
           [-1.,  0.],
           [ 0., -1.]])
    """
    n = check_number(n, "n", low=1, integer=True)
    generator = np.random.default_rng(rng)
    angle = math.tau * np.arange(n) / n if equispaced else generator.uniform(0, math.tau, n)
    return np.column_stack([np.cos(angle), np.sin(angle)]), angle


def stretched_torus(n: int = 500, *, r: float = 3.5, rng: Seed = None) -> tuple[Array, Array]:
    """Draw points on the flat torus (cos u, sin u, r cos v, r sin v).

    Parameters
    ----------
    n : int >= 1, default=500
        Number of points.
    r : float > 0, default=3.5
        Radius of the second circle; that of the first is 1.
    rng : int, Generator or None, default=None
        Seed or source of the angles, which are uniform.

    Returns
    -------
    X : ndarray of shape (n, 4)
        The points.
    coordinates : ndarray of shape (n, 2)
        The angles (u, v), in [0, 2π).

    Raises
    ------
    ValueError
        A number out of range.

    See Also
    --------
    datasets.klein_bottle : Draw points on a Klein bottle.
    datasets.circle : Draw points on the unit circle.

    Examples
    --------
    >>> from heatsketch import datasets
    >>> X, uv = datasets.stretched_torus(500, rng=0)
    >>> X.shape, uv.shape
    ((500, 4), (500, 2))
    """
    n = check_number(n, "n", low=1, integer=True)
    r = check_number(r, "r", low=0, open_low=True)
    uv = np.random.default_rng(rng).uniform(0, math.tau, (n, 2))
    u, v = uv.T
    return np.column_stack([np.cos(u), np.sin(u), r * np.cos(v), r * np.sin(v)]), uv


def klein_bottle(
    n: int = 500, *, a: float = 10.0, b: float = 5.0, rng: Seed = None
) -> tuple[Array, Array]:
    """Draw points on a Klein bottle in four dimensions.

    The point of (u, v) is
    ((a + b cos v) cos u, (a + b cos v) sin u, b sin v cos(u/2), b sin v sin(u/2)).

    Parameters
    ----------
    n : int >= 1, default=500
        Number of points.
    a : float > 0, default=10
        Radius of the tube's centre circle.
    b : float > 0, default=5
        Radius of the tube; the surface does not intersect itself if b < a.
    rng : int, Generator or None, default=None
        Seed or source of u and v, which are uniform (not uniform by area).

    Returns
    -------
    X : ndarray of shape (n, 4)
        The points.
    coordinates : ndarray of shape (n, 2)
        The angles (u, v), in [0, 2π).

    Raises
    ------
    ValueError
        A number out of range.

    See Also
    --------
    datasets.stretched_torus : Draw points on a flat torus.

    Examples
    --------
    >>> from heatsketch import datasets
    >>> X, uv = datasets.klein_bottle(500, rng=0)
    >>> X.shape, uv.shape
    ((500, 4), (500, 2))
    """
    n = check_number(n, "n", low=1, integer=True)
    a, b = (check_number(x, name, low=0, open_low=True) for x, name in ((a, "a"), (b, "b")))
    uv = np.random.default_rng(rng).uniform(0, math.tau, (n, 2))
    u, v = uv.T
    ring, twist = a + b * np.cos(v), b * np.sin(v)
    X = [ring * np.cos(u), ring * np.sin(u), twist * np.cos(u / 2), twist * np.sin(u / 2)]
    return np.column_stack(X), uv


def circle_with_outliers(n: int = 200, *, rng: Seed = None) -> tuple[Array, Array]:
    """Draw n - 2 points on the unit circle, followed by the two outliers (0, 3) and (3, 0).

    Parameters
    ----------
    n : int >= 3, default=200
        Number of points, the outliers included.
    rng : int, Generator or None, default=None
        Seed or source of the angles, which are uniform.

    Returns
    -------
    X : ndarray of shape (n, 2)
        The points.
    angle : ndarray of shape (n,)
        Their angles, in [0, 2π); NaN for the two outliers, which have no angle on the circle.

    Raises
    ------
    ValueError
        A number out of range.

    See Also
    --------
    datasets.circle : Draw points on the unit circle.

    Examples
    --------
    >>> from heatsketch import datasets
    >>> X, angle = datasets.circle_with_outliers(200, rng=0)
    >>> X[-2:]
    array([[0., 3.],
           [3., 0.]])
    """
    n = check_number(n, "n", low=3, integer=True)
    X, angle = circle(n - 2, rng=rng)
    return np.vstack([X, [[0.0, 3.0], [3.0, 0.0]]]), np.append(angle, [np.nan, np.nan])


def gaussian_clouds(
    n: int = 300,
    *,
    n_labels: int = 3,
    dim: int = 10,
    separation: float = 4.0,
    rng: Seed = None,
) -> tuple[Array, Array]:
    """Draw points from standard normal clouds centred at multiples of the unit vectors.

    Parameters
    ----------
    n : int >= 1, default=300
        Number of points; the clouds differ by at most one point.
    n_labels : int >= 1, default=3
        Number of clouds.
    dim : int >= n_labels, default=10
        Number of features.
    separation : float >= 0, default=4
        Cloud j is N(separation × e_j, I), in units of its standard deviation.
    rng : int, Generator or None, default=None
        Seed or source of the normal numbers.

    Returns
    -------
    X : ndarray of shape (n, dim)
        The points.
    label : ndarray of shape (n,)
        The cloud of each point, in increasing order.

    Raises
    ------
    ValueError
        A number out of range. There are at most as many clouds as dimensions.

    See Also
    --------
    datasets.digits : Return handwritten digits.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import datasets
    >>> X, label = datasets.gaussian_clouds(300, rng=0)
    >>> np.bincount(label)
    array([100, 100, 100])
    """
    n = check_number(n, "n", low=1, integer=True)
    n_labels = check_number(n_labels, "n_labels", low=1, integer=True)
    dim = check_number(dim, "dim", low=1, integer=True)
    separation = check_number(separation, "separation", low=0)
    if n_labels > dim:
        raise ValueError(
            f"n_labels={n_labels} but dim={dim}, so that there are fewer unit vectors than clouds; "
            f"pass n_labels <= {dim}."
        )
    label = np.sort(np.arange(n) % n_labels)
    X = np.random.default_rng(rng).standard_normal((n, dim))
    X[np.arange(n), label] += separation
    return X, label


def swiss_roll(
    n: int = 2000, *, noise: float = 0.0, mesh: str = "random", rng: Seed = None
) -> tuple[Array, Array]:
    """Draw points on the roll (x cos x, y, x sin x) with x in [6, 18] and y in [6, 12].

    Parameters
    ----------
    n : int >= 1, default=2000
        Number of points. With `mesh="uniform"` it is the nearest number that fills a grid, which
        differs from n by at most half the number of rows (2000 gives 9 × 222 = 1998).
    noise : float >= 0, default=0
        Standard deviation of the normal noise added to every coordinate of X.
    mesh : {"random", "uniform"}, default="random"
        Uniform x and y, or a regular grid with the same spacing along the spiral and in height.
    rng : int, Generator or None, default=None
        Seed or source of the random numbers.

    Returns
    -------
    X : ndarray of shape (n, 3)
        The points.
    coordinates : ndarray of shape (n, 2)
        Arc length along the spiral from x = 6 (0 to 144.5), and y: the unrolled strip.

    Raises
    ------
    ValueError
        A number out of range.

    See Also
    --------
    datasets.klein_bottle : Draw points on a Klein bottle.
    classical.Isomap : Embed by path lengths in a neighbourhood graph.

    Examples
    --------
    >>> from heatsketch import datasets
    >>> X, flat = datasets.swiss_roll(500, noise=0.1, rng=0)
    >>> X.shape, flat.shape
    ((500, 3), (500, 2))
    """
    n = check_number(n, "n", low=1, integer=True)
    noise = check_number(noise, "noise", low=0)
    check_choice(mesh, "mesh", ("random", "uniform"))
    generator = np.random.default_rng(rng)
    start, end = _arc_length(6.0), _arc_length(18.0)
    if mesh == "random":
        x = generator.uniform(6, 18, n)
        flat = np.column_stack([_arc_length(x) - start, generator.uniform(6, 12, n)])
    else:  # a square grid in the middle of the strip
        width, height = float(end - start), 6.0
        rows = max(1, round(math.sqrt(n * height / width)))
        columns = max(1, round(n / rows))
        spacing = min(width / columns, height / rows if rows > 1 else math.inf)
        along = width / 2 + spacing * (np.arange(columns) - (columns - 1) / 2)
        up = 6 + height / 2 + spacing * (np.arange(rows) - (rows - 1) / 2)
        flat = np.column_stack([np.repeat(along, rows), np.tile(up, columns)])
        length = flat[:, 0] + start
        x = np.sqrt(2 * length)
        for _ in range(5):  # Newton's method inverts the arc length; four steps reach rounding
            x -= (_arc_length(x) - length) / np.hypot(1, x)
    X = np.column_stack([x * np.cos(x), flat[:, 1], x * np.sin(x)])
    return X + noise * generator.standard_normal(X.shape), flat


def us_cities() -> tuple[Array, Array]:
    """Return the distances by air between ten cities of the United States.

    The cities are Atlanta, Chicago, Denver, Houston, Los Angeles, Miami, New York, San Francisco,
    Seattle and Washington, in this order. Distances on a sphere, rounded, are not Euclidean, so
    that classical scaling finds some negative eigenvalues; two coordinates are the map.

    Returns
    -------
    D : ndarray of shape (10, 10)
        Distances in miles, for ``metric="precomputed"``.
    position : ndarray of shape (10, 2)
        Longitude and latitude in degrees.

    See Also
    --------
    classical.ClassicalMDS : Embed distances by classical scaling.
    classical.NonmetricMDS : Embed so that the order of distances is kept best.

    Examples
    --------
    >>> import heatsketch as hs
    >>> D, position = hs.datasets.us_cities()
    >>> model = hs.classical.ClassicalMDS(metric="precomputed").fit(D)
    >>> model.diagnostics_["negative_eigenvalues"]
    3
    """
    miles = np.zeros((10, 10))
    miles[np.tril_indices(10, -1)] = [int(number) for number in _MILES.split()]
    position = np.array([float(number) for number in _POSITIONS.split()]).reshape(10, 2)
    return miles + miles.T, position


_MILES = """
    587
    1212 920
    701 940 879
    1936 1745 831 1374
    604 1188 1726 968 2339
    748 713 1631 1420 2451 1092
    2139 1858 949 1645 347 2594 2571
    2182 1737 1021 1891 959 2734 2408 678
    543 597 1494 1220 2300 923 205 2442 2329
"""
_POSITIONS = """
    -84.39 33.75  -87.63 41.88  -104.99 39.74  -95.37 29.76  -118.24 34.05
    -80.19 25.76  -74.01 40.71  -122.42 37.77  -122.33 47.61  -77.04 38.91
"""


def _arc_length(x: float | Array) -> Array:
    """Return the length of the spiral (x cos x, x sin x) from 0 to x."""
    return np.asarray((x * np.hypot(1, x) + np.arcsinh(x)) / 2)


# Names of the coordinates as columns of a table. They begin with "label", so that a set that is
# written to a file is read with the same features.
COORDINATES: dict[str, tuple[str, ...]] = {
    "digits": ("label",),
    "circle": ("label_angle",),
    "circle_with_outliers": ("label_angle",),
    "stretched_torus": ("label_u", "label_v"),
    "klein_bottle": ("label_u", "label_v"),
    "gaussian_clouds": ("label",),
    "swiss_roll": ("label_arc", "label_height"),
}

DATASETS: dict[str, Callable[..., tuple[Array, Array]]] = {
    name: globals()[name] for name in COORDINATES
}

__all__ = ["COORDINATES", "DATASETS", *COORDINATES, "us_cities"]
