"""What a case of a bad input is, and what may come of it."""

import re
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from numpy.testing import assert_allclose, assert_array_equal

import heatsketch

OURS = Path(heatsketch.__file__).parent
_LONGEST = 320  # message in the page


def strictly(function: Callable[[], Any]) -> Any:
    """Call with every warning an error, but that of ties, of which whole numbers have many."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="n_neighbors=.* are equally far")
        return function()


def refused(error: Any, *words: str) -> Any:
    """Expect an error whose message has all the words."""
    return pytest.raises(error, match=_pattern(words))


def rows_match(given: Any, clean: Any, tolerance: float) -> None:
    if tolerance == 0:
        assert_array_equal(given, clean)
    else:
        assert_allclose(given, clean, rtol=0, atol=tolerance * abs(clean).max())


def called(given: Callable[[], Any]) -> Any:
    """Be the door of a case whose input is a call."""
    return given()


@dataclass(frozen=True)
class Seen:
    """What a reader of the page is told."""

    what: str
    message: str = ""
    own: bool = (
        True  # the message is the library's, not one that differs between versions of others
    )


class Refused:
    """An error is raised, and its message has these words; of another class only if it is named."""

    def __init__(self, *words: str, error: Any = ValueError) -> None:
        self.words, self.error = words, error

    def check(self, door: Callable[[Any], Any], given: Any) -> None:
        with refused(self.error, *self.words):
            strictly(lambda: door(given))

    def seen(self, door: Callable[[Any], Any], given: Any) -> Seen:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                door(given)
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            own = Path(frame.filename).is_relative_to(OURS)
            named = "" if type(error) is ValueError else f" (`{type(error).__name__}`)"
            return Seen(f"refused{named}", plain(str(error)), own)
        raise AssertionError(f"nothing was refused, in place of {self.words}")


class Warned:
    """There is a result, and a warning whose message has these words."""

    def __init__(self, category: type[Warning], *words: str, note: str = "") -> None:
        self.category, self.words, self.note = category, words, note

    def check(self, door: Callable[[Any], Any], given: Any) -> None:
        with pytest.warns(self.category, match=_pattern(self.words)):
            door(given)

    def seen(self, door: Callable[[Any], Any], given: Any) -> Seen:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            door(given)
        said = [str(one.message) for one in caught if issubclass(one.category, self.category)]
        message = next(text for text in said if re.search(_pattern(self.words), text))
        return Seen(f"{self.note or 'a result'}, `{self.category.__name__}`", plain(message))


class Same:
    """The result is that of clean data: bitwise, or to a tolerance next to the largest number."""

    words = ()

    def __init__(self, clean: Any, tolerance: float = 0) -> None:
        self.clean, self.tolerance = clean, tolerance

    def check(self, door: Callable[[Any], Any], given: Any) -> None:
        found, expected = strictly(lambda: door(given)), door(self.clean)
        assert found.dtype == expected.dtype
        rows_match(found, expected, self.tolerance)

    def seen(self, door: Callable[[Any], Any], given: Any) -> Seen:
        self.check(door, given)
        return Seen(
            f"as clean data, to {self.tolerance:g}" if self.tolerance else "bitwise as clean data"
        )


@dataclass(frozen=True)
class Case:
    """A bad input: its title in the page, what the doors are given, and what comes of it."""

    title: str
    given: Any
    expected: Refused | Warned | Same

    def check(self, door: Callable[[Any], Any] = called) -> None:
        self.expected.check(door, self.given)

    def seen(self, door: Callable[[Any], Any] = called) -> Seen:
        return self.expected.seen(door, self.given)


def plain(message: str) -> str:
    """Return a message on one line, without the folder of a file and long lists of numbers."""
    message = re.sub(r"(?<![\w.])([A-Za-z]:)?[/\\][\w./\\~-]*[/\\]", "", " ".join(message.split()))
    message = re.sub(r"\[[^\]]{60,}\]", "[…]", message)
    return message if len(message) <= _LONGEST else message[: _LONGEST - 2] + " …"


def _pattern(words: tuple[str, ...]) -> str:
    return "(?s)" + "".join(f"(?=.*{re.escape(word)})" for word in words)
