"""Methods compared on the same data, with the same neighbours, and the audit of one picture.

`run` has all estimators by name, runs them and makes the table; `audit` is the audit.
"""

from heatsketch.comparison.run import Comparison, Row, compare

__all__ = ["Comparison", "Row", "compare"]
