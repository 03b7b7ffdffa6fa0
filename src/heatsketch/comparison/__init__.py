"""Methods compared on the same data, with the same neighbours.

`run` runs them; `references` has the distances that they are compared with; `usage` measures time
and memory; `result` is the table.
"""

from heatsketch.comparison.result import Comparison, Row
from heatsketch.comparison.run import compare

__all__ = ["Comparison", "Row", "compare"]
