"""Points that exceed memory: a sample is fitted, all others are mapped block by block.

`stream` leads a source through these steps; `sample` draws rows and measures the error from
sampling; `run` keeps the folder from which a killed run resumes, and joins the blocks. Reading by
blocks is `io.blocks`.
"""

from heatsketch.distributed.stream import Streamed, embed, fit

__all__ = ["Streamed", "embed", "fit"]
