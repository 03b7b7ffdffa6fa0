"""The MNIST digits, from IDX files or from OpenML."""

import gzip
import math
import zlib
from pathlib import Path

import numpy as np

from heatsketch._checks import check_choice
from heatsketch._typing import Array

_IMAGES_MAGIC, _LABELS_MAGIC = 0x00000803, 0x00000801  # unsigned bytes in three dimensions, in one
_MAX_DEFLATE_RATIO = 1032  # of the unpacked to the packed size


def mnist(path: str | Path | None = None, *, part: str = "test") -> tuple[Array, Array]:
    """Return the MNIST digits of 28 × 28 pixels, from IDX files or from OpenML.

    Parameters
    ----------
    path : folder or None, default None
        Holds `t10k-images-idx3-ubyte`, `t10k-labels-idx1-ubyte` (test) and `train-…` (train),
        plain or with the ending .gz. None downloads "mnist_784" from OpenML.
    part : {"test", "train", "all"}, default "test"
        10,000 test images, 60,000 training images, or both, the training images first.

    Returns
    -------
    X : array of float32 (n, 784)
        Grey values 0 to 255.
    label : array of int (n,)
        The digit, 0 to 9.

    Raises
    ------
    FileNotFoundError
        If an IDX file is not in the folder.
    ValueError
        If a file is not an IDX file, or is damaged, or images and labels differ in number.

    Examples
    --------
    >>> from heatsketch import datasets
    >>> X, label = datasets.mnist("mnist", part="train")  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (60000, 784)
    """
    check_choice(part, "part", ("test", "train", "all"))
    if path is None:
        return _openml_mnist(part)
    prefixes = {"test": ["t10k"], "train": ["train"], "all": ["train", "t10k"]}[part]
    parts = [_idx_pair(Path(path), prefix) for prefix in prefixes]
    return np.vstack([X for X, _ in parts]), np.concatenate([label for _, label in parts])


def _openml_mnist(part: str) -> tuple[Array, Array]:
    from sklearn.datasets import fetch_openml

    data = fetch_openml("mnist_784", version=1, as_frame=False)
    rows = {"train": slice(60000), "test": slice(60000, None), "all": slice(None)}[part]
    return data.data[rows].astype(np.float32), data.target[rows].astype(np.int64)


def _idx_pair(folder: Path, prefix: str) -> tuple[Array, Array]:
    images_path = _idx_path(folder, f"{prefix}-images-idx3-ubyte")
    labels_path = _idx_path(folder, f"{prefix}-labels-idx1-ubyte")
    images, labels = _read_idx(images_path, _IMAGES_MAGIC), _read_idx(labels_path, _LABELS_MAGIC)
    if images.shape[1:] != (28, 28):
        raise ValueError(f"{images_path} holds images of {images.shape[1:]} pixels, not (28, 28).")
    if len(images) != len(labels):
        raise ValueError(
            f"{images_path} holds {len(images)} images but {labels_path} holds {len(labels)} "
            "labels; pass files that belong together."
        )
    return images.reshape(-1, 784).astype(np.float32), labels.astype(np.int64)


def _idx_path(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise FileNotFoundError(f"{folder} holds neither {name} nor {name}.gz; add one of them.")


def _read_idx(path: Path, magic: int) -> Array:
    """Read an array of unsigned bytes; its declared size is checked before memory is allocated."""
    packed = path.suffix == ".gz"
    try:
        with gzip.open(path) if packed else path.open("rb") as stream:
            shape = _idx_shape(stream.read(4 * (1 + magic % 256)), magic, path)
            size = math.prod(shape)
            if size <= path.stat().st_size * (_MAX_DEFLATE_RATIO if packed else 1):
                content = stream.read(size + 1)
                if len(content) == size:
                    return np.frombuffer(content, dtype=np.uint8).reshape(shape)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is a damaged gzip file: {error}; download it again.") from error
    raise ValueError(
        f"{path} declares {size:,} bytes of content but does not hold exactly that many; "
        "download it again."
    )


def _idx_shape(header: bytes, magic: int, path: Path) -> tuple[int, ...]:
    words = np.frombuffer(header[: len(header) // 4 * 4], dtype=">u4").tolist()
    if not words or words[0] != magic:
        raise ValueError(
            f"{path} begins with {header[:4].hex() or 'nothing'}, not with the IDX magic number "
            f"{magic:08x}; pass an MNIST file."
        )
    if len(words) < 1 + magic % 256:
        raise ValueError(f"{path} ends within its header; download it again.")
    return tuple(words[1:])
