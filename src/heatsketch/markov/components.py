"""The components of a diffusion, and the operator within them."""

from __future__ import annotations

import numpy as np

from heatsketch._typing import Array
from heatsketch.markov.diffusion import Diffusion
from heatsketch.operators.operator import Deflated, between_components

_MOST_ENTRIES = 2**25  # of the directions between components: as much as some blocks of columns


def component_labels(diffusion: Diffusion) -> Array | None:
    """Return the component of each vertex (n,), or None where only the whole is looked at.

    That is where there is one component, or more than can be taken out (all are up to 2,048 points,
    335 of 100,000 points); and in the symmetric form, where a component is not a point at large
    times.
    """
    count = diffusion.diagnostics.get("components", 1)
    if count == 1 or diffusion.normalization == "symmetric" or count * diffusion.n > _MOST_ENTRIES:
        return None
    return diffusion.operator.components()


def deflate_components(diffusion: Diffusion, labels: Array) -> Deflated:
    """Return A without the directions that are multiples of √π on each component.

    Distances within a component are the same without them, in the Markov and the bistochastic form.
    """
    A = diffusion.deflated()
    between = between_components(np.sqrt(diffusion.measure), labels, A.n)
    between /= np.linalg.norm(between, axis=0)
    return A.deflated(between)


def within_component(diffusion: Diffusion, vertices: Array) -> Deflated:
    """Return A between the vertices of one component, without its trivial direction √π."""
    root = np.sqrt(diffusion.measure[vertices])
    return Deflated(diffusion.operator.restricted(vertices), root / np.linalg.norm(root))
