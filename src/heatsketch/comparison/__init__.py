"""Methods compared on the same data, with the same neighbours.

`run` runs them; `references` are the distances they are held against; `usage` measures time and
memory; `result` is the table.
"""

from heatsketch.comparison.result import Comparison, Row
from heatsketch.comparison.run import compare

__all__ = ["Comparison", "Row", "compare"]
