"""The pictures of the notes as points: Pacman and a photograph, turned, and the MNIST digits."""

import gzip
from pathlib import Path

import numpy as np
from scipy import ndimage

PACMAN_RADIUS = 0.4  # of the side of the image
HALF_MOUTH_ANGLE = np.pi / 6
TEMPLE_BOX = (40, 100, 360, 420)  # left, upper, right and lower edge in china.jpg, pixels


def pacman(n_images: int = 200, size: int = 65) -> tuple[np.ndarray, np.ndarray]:
    """Draw Pacman, white on black, turned by the angles 2πi/n about the centre of the image.

    §9.4.2: a closed curve of images. Every image is drawn from its formula at the centres of its
    pixels: a disc of radius 2/5 of the side, less a wedge of 60° at the centre. No image is
    resampled, and a quarter turn moves pixels exactly to pixels.

    Returns
    -------
    X : array (n, size²)
        0 or 255, the rows of an image one after the other, from the top.
    angle : array (n,), in [0, 2π)
        Where the mouth points, counter-clockwise from the right.
    """
    x, y = _pixel_centres(size)
    disc = x**2 + y**2 <= (PACMAN_RADIUS * size) ** 2
    X = np.zeros((n_images, size * size))
    for i in range(n_images):
        # Quarter turns swap coordinates without rounding.
        quarters, rest = divmod(4 * i, n_images)
        turn = np.pi / 2 * rest / n_images
        cos, sin = np.cos(turn), np.sin(turn)
        for _ in range(quarters):
            cos, sin = -sin, cos
        ahead, left = x * cos + y * sin, y * cos - x * sin
        X[i, disc & ~(np.abs(left) < np.tan(HALF_MOUTH_ANGLE) * ahead)] = 255
    return X, 2 * np.pi * np.arange(n_images) / n_images


def rotated_picture(
    n_images: int, size: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Turn a grey photograph of a temple about its centre by random angles.

    A square of `china.jpg`, which comes with scikit-learn, replaces the Cat-in-the-hat of §9.4.3.
    Turned by half a turn it is nearer to itself than turned by a third of one, so that the images
    wind around twice.

    Returns
    -------
    X : array of float32 (n, size²)
        Grey values, about 0 to 255, the rows of an image one after the other, from the top. They
        are zero outside the disc that touches the sides, so that no corner turns out of the image.
    angle : array (n,), in [0, 2π)
        Angle by which the picture is turned, counter-clockwise.
    """
    angle = rng.uniform(0, 2 * np.pi, n_images)
    return turned(temple(size), angle), angle


def temple(size: int) -> np.ndarray:
    """Return the square of the photograph, grey, (size, size)."""
    from PIL import Image
    from sklearn.datasets import load_sample_image

    grey = Image.fromarray(load_sample_image("china.jpg").mean(axis=2, dtype=np.float32))
    shrunk = grey.resize((size, size), Image.Resampling.LANCZOS, box=TEMPLE_BOX)
    return np.asarray(shrunk, dtype=np.float64)


def turned(picture: np.ndarray, angles: np.ndarray) -> np.ndarray:
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


def _pixel_centres(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates of the pixels from the centre: x to the right, y upwards."""
    ticks = np.arange(size) - (size - 1) / 2
    return np.tile(ticks, size), np.repeat(-ticks, size)


def mnist(folder: Path | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the 10,000 test digits of MNIST, float32 (n, 784), and their labels.

    From t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz in a folder, or from OpenML.
    """
    if folder is None:
        from sklearn.datasets import fetch_openml

        X, label = fetch_openml("mnist_784", version=1, as_frame=False, return_X_y=True)
        return X[60_000:].astype(np.float32), label[60_000:].astype(np.int64)
    images = gzip.decompress((folder / "t10k-images-idx3-ubyte.gz").read_bytes())
    labels = gzip.decompress((folder / "t10k-labels-idx1-ubyte.gz").read_bytes())
    X = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 784)  # after four words
    return X.astype(np.float32), np.frombuffer(labels, np.uint8, offset=8).astype(np.int64)
