"""Points that no memory holds: a sample is fitted, all others are mapped block by block.

`stream` is the way of a source through it; `sample` chooses rows and measures what a sample costs;
`run` is the folder by which a run that was killed goes on, and puts the blocks together.
Reading by blocks is `io.blocks`.
"""

from heatsketch.distributed.stream import Streamed, embed, fit

__all__ = ["Streamed", "embed", "fit"]
