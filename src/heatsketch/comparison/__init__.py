"""Methods compared on the same data, with the same neighbours, and the audit of one picture.

`run` runs them, `methods` has all estimators by name, `result` is the table, `audit` the audit.
"""

from heatsketch.comparison.result import Comparison, Row
from heatsketch.comparison.run import compare

__all__ = ["Comparison", "Row", "compare"]
