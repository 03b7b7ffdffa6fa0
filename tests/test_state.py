"""Methods that change their object at the end, at once."""

from functools import cached_property

import pytest

from heatsketch._state import at_once


class Square:
    """A side, and an area that is computed when needed."""

    def __init__(self, side):
        self.side = side

    @cached_property
    def area(self):
        return self.side**2

    @at_once
    def grow(self, times):
        self.side *= times
        if self.side < 0:
            raise ValueError("a side is not negative")


def test_what_was_computed_from_the_old_state_is_computed_again():
    square = Square(3)
    assert square.area == 9
    assert square.grow(2).area == 36


def test_a_call_that_raises_changes_nothing():
    square = Square(3)
    area = square.area
    with pytest.raises(ValueError, match="not negative"):
        square.grow(-1)
    assert vars(square) == {"side": 3, "area": area}
