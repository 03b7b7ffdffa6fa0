"""Changes of an object that are made at the end of a method, at once, or not at all."""

import copy
from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


def at_once(method: Method) -> Method:
    """Make a method work on a copy, whose attributes the object gets at the end.

    So a call that raises or is interrupted changes nothing. The copy has no values that were
    computed when needed (`cached_property`), because the method changes what they follow from.
    """

    @wraps(method)
    def changed(self: Any, *args: Any, **options: Any) -> Any:
        draft = fresh(self)
        method(draft, *args, **options)
        self.__dict__ = draft.__dict__
        return self

    return cast(Method, changed)


def fresh(one: Any) -> Any:
    """Return a copy of an object without what was computed when needed."""
    kind, draft = type(one), copy.copy(one)
    for name in list(vars(draft)):
        if isinstance(getattr(kind, name, None), cached_property):
            del vars(draft)[name]  # of a frozen record, too
    return draft
