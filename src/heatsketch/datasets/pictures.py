"""Pictures as points: handwritten digits, and pictures rotated about their centre."""

import numpy as np
from scipy import ndimage

from heatsketch._checks import check_number
from heatsketch._typing import Array
from heatsketch.datasets.shapes import Seed

_FULL_TURN = 2 * np.pi  # radians
_PACMAN_RADIUS = 0.4  # of the side of the image
_HALF_MOUTH_ANGLE = np.pi / 6
_TEMPLE_BOX = (40, 100, 360, 420)  # left, upper, right and lower edge in china.jpg, pixels


def digits() -> tuple[Array, Array]:
    """Return scikit-learn's 1797 handwritten digits of 8 × 8 pixels.

    Returns
    -------
    X : array (1797, 64)
        Grey values 0 to 16.
    label : array of int (1797,)
        The digit, 0 to 9.

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


def pacman(n_images: int = 200, size: int = 65) -> tuple[Array, Array]:
    """Draw Pacman, white on black, turned by the angles 2πi/n about the centre of the image.

    *Linear and nonlinear dimensionality reduction*, §9.4.2: a closed curve of images. Every image
    is drawn from its formula at the centres of its pixels: a disc of radius 2/5 of the side, less a
    wedge of 60° at the centre. No image is resampled, and a quarter turn moves pixels exactly to
    pixels.

    Parameters
    ----------
    n_images : int >= 1, default 200
        Number of images n; 200 in the notes.
    size : int >= 3, default 65
        Pixels of a side; 65 in the notes. With an odd one the centre is a pixel.

    Returns
    -------
    X : array (n, size²)
        0 or 255, the rows of an image one after the other, from the top.
    angle : array (n,), in [0, 2π)
        Where the mouth points, counter-clockwise from the right.

    Raises
    ------
    ValueError
        A number out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from heatsketch import datasets
    >>> X, angle = datasets.pacman(4, size=9)
    >>> for row in np.where(X[0] > 0, "#", "-").reshape(9, 9)[2:-2]:
    ...     print("".join(row))
    --#####--
    -#####---
    -####----
    -#####---
    --#####--
    """
    n = check_number(n_images, "n_images", low=1, integer=True)
    size = check_number(size, "size", low=3, integer=True)
    x, y = _pixel_centres(size)
    disc = x**2 + y**2 <= (_PACMAN_RADIUS * size) ** 2
    X = np.zeros((n, size * size))
    for i in range(n):
        # Quarter turns swap coordinates without rounding.
        quarters, rest = divmod(4 * i, n)
        cos, sin = np.cos(_FULL_TURN / 4 * rest / n), np.sin(_FULL_TURN / 4 * rest / n)
        for _ in range(quarters):
            cos, sin = -sin, cos
        ahead, left = x * cos + y * sin, y * cos - x * sin
        X[i, disc & ~(np.abs(left) < np.tan(_HALF_MOUTH_ANGLE) * ahead)] = 255
    return X, _FULL_TURN * np.arange(n) / n


def _pixel_centres(size: int) -> tuple[Array, Array]:
    """Return the coordinates of the pixels from the centre: x to the right, y upwards."""
    ticks = np.arange(size) - (size - 1) / 2
    return np.tile(ticks, size), np.repeat(-ticks, size)


def rotated_picture(
    n_images: int = 200, size: int = 100, *, rng: Seed = None
) -> tuple[Array, Array]:
    """Turn a grey photograph of a temple about its centre by random angles.

    A square of `china.jpg`, which comes with scikit-learn, replaces the Cat-in-the-hat of *Linear
    and nonlinear dimensionality reduction*, §9.4.3. Turned by half a turn it is nearer to itself
    than turned by a third of one, so that the images wind around twice.

    Parameters
    ----------
    n_images : int >= 1, default 200
        Number of images; 200 in the notes.
    size : int from 8 to 500, default 100
        Pixels of a side; 500 in the notes (200 MB for 200 images). The square in the photograph has
        320.
    rng : int, numpy.random.Generator or None, default None
        Seed or source of the angles, which are uniform.

    Returns
    -------
    X : array of float32 (n, size²)
        Grey values, about 0 to 255, the rows of an image one after the other, from the top. They
        are zero outside the disc that touches the sides, so that no corner turns out of the image.
    angle : array (n,), in [0, 2π)
        Angle by which the picture is turned, counter-clockwise.

    Raises
    ------
    ImportError
        If Pillow, which reads the photograph, is missing.

    Notes
    -----
    Cost: 16 products a pixel (cubic splines); 200 images of 500 × 500 take some seconds.

    Examples
    --------
    >>> from heatsketch import datasets
    >>> X, angle = datasets.rotated_picture(20, size=50, rng=0)  # doctest: +SKIP
    >>> X.shape, angle.shape  # doctest: +SKIP
    ((20, 2500), (20,))
    """
    n = check_number(n_images, "n_images", low=1, integer=True)
    size = check_number(size, "size", low=8, high=500, integer=True)
    angle = np.random.default_rng(rng).uniform(0, _FULL_TURN, n)
    return _turned(_temple(size), angle), angle


def _temple(size: int) -> Array:
    """Return the square of the photograph, grey, (size, size)."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "rotated_picture needs Pillow to read its photograph; pip install pillow."
        ) from error
    from sklearn.datasets import load_sample_image

    grey = Image.fromarray(load_sample_image("china.jpg").mean(axis=2, dtype=np.float32))
    shrunk = grey.resize((size, size), Image.Resampling.LANCZOS, box=_TEMPLE_BOX)
    return np.asarray(shrunk, dtype=np.float64)


def _turned(picture: Array, angles: Array) -> Array:
    """Turn a square picture counter-clockwise, and keep the disc: (n, size²), float32."""
    size = len(picture)
    x, y = _pixel_centres(size)
    disc = np.flatnonzero(x**2 + y**2 <= ((size - 1) / 2) ** 2)
    x, y = x[disc], y[disc]
    splines = ndimage.spline_filter(picture)
    X = np.zeros((len(angles), size * size), np.float32)
    for row, angle in zip(X, angles, strict=True):
        cos, sin = np.cos(angle), np.sin(angle)
        places = np.stack([x * sin - y * cos, x * cos + y * sin]) + (size - 1) / 2
        row[disc] = ndimage.map_coordinates(splines, places, mode="mirror", prefilter=False)
    return X
