"""Text columns that hold numbers, or look as if they did."""

from collections.abc import Callable
from typing import Any

from heatsketch.io.reading import Reading

# A missing number, as spreadsheets, R, Python and pandas write it.
_MISSING = r"^(|[nN][aA]|#?[nN]/[aA]|#NA|#N/A N/A|-?[nN][aA][nN]|[nN][uU][lL][lL]|None|<NA>|NaT)$"
_NUMBER = r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$|^[+-]?([iI]nf|[iI]nfinity)$"
# Numbers in another notation: decimal commas, groups of three digits, a currency, per cent, a
# typographic minus. Dates and versions, which have several groups of other lengths, are not.
_SPACE = "['’_ \u00a0\u2009\u202f]"
_GROUPS = f"[0-9]{{1,3}}(([.][0-9]{{3}})+|(,[0-9]{{3}})+|({_SPACE}[0-9]{{3}})+)"
_BODY = f"(({_GROUPS}|[0-9]+)([.,][0-9]*)?|[.,][0-9]+)"
_OTHER = f"^[(]?[-+−–]? ?[$€£¥]? ?{_BODY}([eE][-+−]?[0-9]+)?{_SPACE}?[%‰$€£¥]?[)]?$"
_WITH_UNIT = f"^[-+−–]?{_BODY} [A-Za-zµμ°Ω%/²³]{{1,8}}$"


def as_numbers(
    column: Any, name: str, how: Reading, place: Callable[[int], str], *, asked: bool = False
) -> tuple[Any, str]:
    """Return a text column as numbers, and a note; None in their place if it is text.

    A column in which at least half of the cells, or of the different cells, are numbers must hold
    nothing else but gaps. With `asked` this is so for any column.

    Raises
    ------
    ValueError
        If it holds other cells, unless they count as missing; numbers in other notation never do.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(column.cast(pa.string()).combine_chunks())
    text = pc.if_else(pc.match_substring_regex(text, _MISSING), None, text)
    plain = pc.replace_substring(text, ",", ".") if how.decimal == "," else text
    number = pc.match_substring_regex(plain, _NUMBER)
    if how.decimal == ",":
        number = pc.and_(number, pc.invert(pc.match_substring(text, ".")))
    if not (asked or _mostly(text, pc.or_(number, _in_other_notation(text)))):
        if how.strict and (measured := _in_one_unit(text)) is not None:
            raise ValueError(_complaint(text, measured, name, how, place, _remedy_of_notation))
        return None, ""
    bad = pc.and_(pc.invert(number), pc.is_valid(text))
    other = pc.and_(bad, _in_other_notation(text))
    if pc.any(bad).as_py() and not (how.strict or asked):
        return None, ""
    if pc.any(other).as_py():
        raise ValueError(_complaint(text, other, name, how, place, _remedy_of_notation))
    if pc.any(bad).as_py() and not how.fills_gaps:
        raise ValueError(_complaint(text, bad, name, how, place, _remedy_of_text))
    digits = pc.replace_substring_regex(pc.if_else(number, plain, None), r"^\+", "")
    return digits.cast(pa.float64()), _note(text, bad, name)


def _in_other_notation(text: Any) -> Any:
    import pyarrow.compute as pc

    return pc.match_substring_regex(text, _OTHER)


def _in_one_unit(text: Any) -> Any:
    """Return which cells are numbers with a unit after a blank, if all are and the unit is one."""
    import pyarrow.compute as pc

    measured = pc.match_substring_regex(text, _WITH_UNIT)
    if not pc.all(measured).as_py() or not pc.any(measured).as_py():
        return None
    units = pc.unique(pc.replace_substring_regex(pc.drop_null(text), "^.* ", ""))
    return measured if len(units) == 1 else None


def _mostly(text: Any, numeric: Any) -> bool:
    """Say whether at least half of the cells, or of the different ones, look like numbers."""
    import pyarrow.compute as pc

    numbers, filled = pc.filter(text, numeric), pc.drop_null(text)
    if not len(numbers):
        return False
    distinct = pc.count_distinct(numbers).as_py(), pc.count_distinct(filled).as_py()
    return 2 * len(numbers) >= len(filled) or 2 * distinct[0] >= distinct[1]


def _complaint(
    text: Any,
    bad: Any,
    name: str,
    how: Reading,
    place: Callable[[int], str],
    remedy: Callable[[str, Reading], str],
) -> str:
    import pyarrow.compute as pc

    row, count = pc.index(bad, True).as_py(), pc.sum(bad).as_py()
    value = text[row].as_py()
    others = f" ({count} such cells)" if count > 1 else ""
    return f"column {name!r} holds {value[:80]!r} in {place(row)}{others}; {remedy(value, how)}."


def _remedy_of_notation(value: str, how: Reading) -> str:
    if value.count(",") == 1 and "." not in value and how.decimal == "." and value[-1].isdigit():
        return (
            "if commas mark decimals, pass decimal=',' (--decimal ,); if they separate thousands, "
            "remove them; if this is not a feature, name it with exclude (--exclude)"
        )
    return (
        f"write numbers with {how.decimal!r} for decimals and without signs for thousands, "
        "currencies, per cent or units, or pass exclude (--exclude) if this is not a feature"
    )


def _remedy_of_text(value: str, how: Reading) -> str:
    return (
        "the column looks numeric but this is not a number. Correct it; or count such cells as "
        "missing with missing='drop' or 'median' (--missing); or, if this is not a feature, name "
        "it with exclude, ids or label (--exclude, --id, --label)"
    )


def _note(text: Any, bad: Any, name: str) -> str:
    import pyarrow.compute as pc

    values = pc.unique(pc.filter(text, bad)).to_pylist()
    if not values:
        return ""
    shown = ", ".join(map(repr, values[:3])) + (", …" if len(values) > 3 else "")
    return f"{pc.sum(bad).as_py()} cells of {name!r} count as missing: {shown}"
