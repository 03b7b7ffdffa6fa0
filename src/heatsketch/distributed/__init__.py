"""Points that no memory holds: a sample is fitted, all others are mapped block by block.

`stream` is the way of a source through it; `sample` chooses rows and measures what a sample costs;
`mapping` maps a run of blocks, in a loop here or as one of the `tasks` of a `cluster`; `state` is
the folder by which a run that was killed goes on; `output` puts the blocks together. Reading by
blocks is `io.blocks`.

Or all points have one graph, in tiles that workers of Dask hold: `whole_graph` is the door, `cells`
says which points are in a tile, `shuffle` takes them there and results back, `search` finds
neighbours across tiles (`recall` how many of them), `searched` keeps them, `graph` makes the
affinity symmetric, and `whole` is the sketch by the operator `DaskTiles`.
"""

from heatsketch.distributed.stream import Streamed, embed, fit
from heatsketch.distributed.whole_graph import Sketched, sketch

__all__ = ["Sketched", "Streamed", "embed", "fit", "sketch"]
