"""What is said of a picture, found when it is first asked for."""

from collections.abc import Callable
from threading import Lock
from typing import Any

from heatsketch.metrics.distortions import Distortion
from heatsketch.metrics.picture import PictureQuality

Found = tuple[Distortion | None, PictureQuality | None]

_ONE_AT_A_TIME = Lock()


class Verdict:
    """The distortion and the quality of a picture.

    What it is judged by is kept until then, and is not stored: a verdict that is pickled is found
    first.
    """

    def __init__(self, judge: Callable[[], Found]) -> None:
        self._judge: Callable[[], Found] | None = judge
        self._found: Found | None = None

    @property
    def found(self) -> Found:
        """The distortion and the quality."""
        with _ONE_AT_A_TIME:
            if self._judge is not None:
                self._found, self._judge = self._judge(), None
        return self._found  # type: ignore[return-value]

    def __getstate__(self) -> dict[str, Any]:
        """Return the verdict alone."""
        return {"_judge": None, "_found": self.found}
