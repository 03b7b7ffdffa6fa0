"""The private limits that tests change, so that few points take the way of many."""

from importlib import import_module

import pytest

# Where each one is read, within `heatsketch`. A name that has moved, or is called otherwise, is
# mended here and nowhere else.
LIMITS = {
    # Memory and time
    "available": "_threads.available_memory",
    "show_after": "_threads._DELAY",
    "show_every": "_threads._SECONDS",
    "show_in_a_file_every": "_threads._SECONDS_IN_A_FILE",
    # Tiles, which change no number
    "column_bytes": "metrics.distances._BLOCK_BYTES",
    "device_tile_side": "device.operators.DEVICE_TILE_SIDE",
    "picture_tile": "metrics.neighborhoods._TILE_DISTANCES",
    "differences_at_a_time": "core.blocks._DIFFERENCES_AT_A_TIME",
    "product_tile": "core.blocks._PRODUCT_TILE",
    "row_tile": "markov.diffusion.ROW_TILE",
    "search_tile": "neighbors.search._TILE_ENTRIES",
    "sparse_tile": "core.blocks._SPARSE_ROWS",
    "torch_tile_side": "device.operators.TILE_SIDE",
    # Products and eigenpairs
    "compiled_from": "core.blocks.COMPILED_FROM",
    "dense_eigenpairs": "spectral.eigen.DENSE_LIMIT",
    "explaining": "estimators.diffusion_map._MOST_EXPLAINING",
    "few_steps": "neighbors.graph._FEW",
    "few_vertices": "markov.rows.FEW_VERTICES",
    "leading": "estimators.heat_embedding.N_LEADING",
    "points_per_column": "spectral.eigen._POINTS_PER_COLUMN",
    "products": "spectral.eigen._MAX_PRODUCTS",
    "pseudotime_pairs": "uncertainty.pseudotimes.N_PAIRS",
    "pseudotime_same_place": "uncertainty.pseudotimes._SAME_PLACE",
    "pseudotime_tips": "uncertainty.pseudotimes._TIPS",
    "trace_seed": "spectral.traces._SEED",
    "all_eigenpairs": """spectral.functions.SPECTRAL_LIMIT spectral.traces.SPECTRAL_LIMIT
        markov.rows.SPECTRAL_LIMIT metrics.distances.SPECTRAL_LIMIT
        uncertainty.pseudotimes.SPECTRAL_LIMIT estimators.diffusion_map.SPECTRAL_LIMIT""",
    # Neighbours and affinities
    "cell_points": "neighbors.lists._POINTS_PER_CELL",
    "device_cell_points": "device.search._POINTS_PER_CELL",
    "dense_points": "markov.affinity.MOST_POINTS",
    "mixture_gain": "mixture.marginal._GAIN",
    "mixture_rounds": "mixture.marginal._MOST_ROUNDS",
    "exact_points": "neighbors.search._EXACT_POINTS",
    "donors": "neighbors.missing.MOST_DONORS",
    "trended": "neighbors.missing._MOST_TRENDED",
    "fill_rounds": "neighbors.missing._MOST_ROUNDS",
    "mixture_rank": "mixture.mixture_kernel._MAX_RANK",
    "small_component": "neighbors.graph._SMALL_COMPONENT_FACTOR",
    "stored_points": "markov.affinity.STORED_POINTS",
    # Scales
    "bandwidth_columns": "scales._SAMPLE_COLUMNS",
    "bandwidth_points": "scales._EXACT_POINTS",
    "bandwidth_rows": "scales._SAMPLE_ROWS",
    "connecting_points": "scales.EXACT_POINTS",
    # Pairs and pictures
    "layout_steps": "layout.maps.STEPS",
    "uncompiled_points": "core.blocks._UNCOMPILED_UP_TO",
    "all_pairs": "layout.linear.ALL_PAIRS_UP_TO metrics.distortions.ALL_PAIRS_UP_TO",
    "compared_points": "comparison.run._SAMPLED_POINTS",
    "gram_columns": "layout.linear._WIDE",
    "near_rows": "layout.linear.NEAR_ROWS",
    "least_resamples": "uncertainty.resampling._LEAST_RESAMPLES",
    "negligible_error": "metrics.distortions._NEGLIGIBLE",
    "picture_points": "metrics.neighborhoods._MAX_POINTS_ALL_ROWS",
    "picture_rows": "metrics.neighborhoods._SAMPLE_ROWS",
    "random_pairs": "layout.linear.RANDOM_PAIRS",
    "report_few_points": "reports.facts._FEW_POINTS",
    "report_points": "reports.facts.MOST_POINTS",
    "report_features": "reports.columns.MANY_POINTS",
    "report_values": "reports.columns.MOST_VALUES",
    # Other embeddings
    "pca_size": "classical.pca._MAX_EXACT_SIZE",
    "sne_points": "classical.sne._MAX_COMPLETE_POINTS",
    # Files and commands
    "block_bytes": """io.text.BLOCK_BYTES io.parquet.BLOCK_BYTES io.anndata_files.BLOCK_BYTES
        io.numpy_files.BLOCK_BYTES io.table.BLOCK_BYTES""",
    "exact_distances": "cli.distances.EXACT_UP_TO",
    "least_sample": "cli.embed._LEAST_SAMPLE",
    "held_out": "distributed.HELD_OUT",
    "read_whole_bytes": "cli.embed._READ_WHOLE_BYTES",
    "unpacked_bytes": "io.files._FREE_BYTES",
}


def set_limits(patch: pytest.MonkeyPatch, **values: object) -> None:
    """Set limits by their names above, until the patch ends: `set_limits(patch, all_pairs=100)`."""
    for name, value in values.items():
        for path in LIMITS[name].split():
            module, _, constant = path.rpartition(".")
            patch.setattr(import_module(f"heatsketch.{module}"), constant, value)
