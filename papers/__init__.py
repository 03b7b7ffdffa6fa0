"""The experiments, figures and bounds of the three texts that heatsketch is built on.

`sketching` is for *Sketching the heat kernel*, `representation` for *Diffusion representation*, and
`notes` for *Linear and nonlinear dimensionality reduction*. Nothing here is installed with the
library: run `python -m papers` from the root of a clone.
"""
