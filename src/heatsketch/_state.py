"""Changes of an object that are made at the end of a method, at once, or not at all."""

import copy
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


def at_once(method: Method) -> Method:
    """Make a method work on a copy, whose attributes the object gets at the end.

    So a call that raises or is interrupted changes nothing.
    """

    @wraps(method)
    def changed(self: Any, *args: Any, **options: Any) -> Any:
        draft = copy.copy(self)
        method(draft, *args, **options)
        self.__dict__ = draft.__dict__
        return self

    return cast(Method, changed)
