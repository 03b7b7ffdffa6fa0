"""Methods compared on the same data, with the same neighbours, and the audit of one picture.

`run` runs them; `references` has the distances that they are compared with; `methods` has all
estimators by name; `result` is the table.
"""

from heatsketch.comparison.result import Comparison, Row
from heatsketch.comparison.run import compare

__all__ = ["Comparison", "Row", "compare"]
