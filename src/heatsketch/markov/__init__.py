"""From affinities to diffusion: the normalised operator, its measure, rows for new points."""
