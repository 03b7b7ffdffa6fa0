"""Good calls with data or parameters that change the meaning of the answer, or leave none."""

import numpy as np
import pandas as pd
from scipy import sparse

import heatsketch as hs
from bad_inputs.cases import Case, Refused, Warned
from bad_inputs.inputs import AFFINITIES, FRAME, PATHS, STAR, K, X, embed, spoilt
from problems.clouds import cloud

HEAP = np.full((20, 3), 0.1)
LARGE = np.round(X * 1e6).astype(np.int64) + np.int64(2**53 + 2**30)
DENSE, RADIUS = AFFINITIES["dense"], AFFINITIES["radius"]


def beside(far, **options):
    return hs.diffusion(np.r_[X, np.full((1, 4), far)], **options)


def place(new, **options):
    return hs.HeatSketch(2, random_state=0, **options).fit(X).transform(new)


def many_columns(*names):
    return pd.DataFrame(X * [1, 1, 1e12, 1], columns=names)


NEW_POINTS = {
    "no-rows": Case("no rows in `transform`", lambda: place(X[:0]), Refused("0 sample(s)")),
    "23-renamed": Case(
        "a data frame with other or reordered columns in `transform`",
        lambda: hs.HeatSketch(2).fit(FRAME).transform(FRAME[list("badc")]),
        Refused("feature names should match"),
    ),
    "24-width": Case(
        "another number of columns in `transform`",
        lambda: place(X[:, :3]),
        Refused("3 features", "4 features"),
    ),
    "26-nan": Case(
        "NaN in `transform`",
        lambda: place(spoilt(np.nan, (5, 1))),
        Refused("NaN", "row 5, column 1"),
    ),
    "38-far": Case(
        "new points far from all others",
        lambda: place([[1e4] * 4, X[5], [1e150] * 4], **RADIUS),
        Warned(
            hs.ScaleWarning,
            "rows 0, 2) are too far",
            note="the nearest point is the only neighbour",
        ),
    ),
}

SCALES = {
    "10-large": Case(
        "integers beyond 2^53",
        lambda: embed(hs.HeatSketch, LARGE),
        Warned(hs.ScaleWarning, "integers up to 9.0e+15"),
    ),
    "16-offset": Case(
        "sparse points with an offset so large that distances lose digits (dense kernel)",
        lambda: hs.gaussian_affinity(sparse.csr_matrix(X + 1e8), epsilon=4.0),
        Refused("exponent of sparse points", "X.toarray()"),
    ),
    "27-number": Case(
        "all points the same, epsilon a number",
        lambda: embed(hs.HeatSketch, HEAP, affinity="dense", epsilon=1.0),
        Warned(hs.ScaleWarning, "no information", note="zero"),
    ),
    "27-rule": Case(
        "all points the same, epsilon by a rule",
        lambda: hs.diffusion(HEAP, epsilon="median"),
        Refused("distances are zero", "pass distinct points"),
    ),
    "31-epsilon": Case(
        "data × 1e200, epsilon 1",
        lambda: hs.diffusion(X * 1e200, epsilon=1.0),
        Refused("outside the range of float64", "rescale"),
    ),
    "33-feature": Case(
        "one feature with 95 % of the variance or more",
        lambda: embed(hs.HeatSketch, many_columns("length", "width", "mass", "age")),
        Warned(hs.ScaleWarning, "Feature 'mass' carries 100 %", note="correct"),
    ),
    "37-groups": Case(
        "groups of points without affinity between them",
        lambda: hs.diffusion(np.r_[X, cloud(40, 4, seed=1) + 1e3]),
        Warned(
            hs.DisconnectedWarning,
            "2 components (sizes 60, 40)",
            note="each group diffuses on its own, and coordinates of a map separate them",
        ),
    ),
    "38-outlier": Case(
        "an outlier",
        lambda: beside(1e20),
        Warned(
            hs.DisconnectedWarning,
            "points 60 stand alone",
            note="it stays where it is, the others as without it",
        ),
    ),
    "38-1e200": Case(
        "an outlier at 1e200",
        lambda: beside(1e200),
        Refused("Around point(s) 0, 1", "too small for float64", "leave out"),
    ),
    "38-most": Case(
        "more than half of the points isolated",
        lambda: embed(hs.HeatSketch, np.r_[X[:20] * 0.1, X[20:] * 1e4], epsilon=1.0),
        Refused("40 of 60 points", "bandwidth is too small", "larger epsilon"),
    ),
    "39-tiny": Case(
        "epsilon so small that all points are isolated",
        lambda: embed(hs.HeatSketch, X, affinity="dense", epsilon=1e-300),
        Refused("60 of 60 points", "bandwidth is too small"),
    ),
    "40-huge": Case(
        "epsilon so large that every affinity is 1 (dense, radius)",
        lambda: embed(hs.HeatSketch, X, affinity="dense", epsilon=1e300),
        Warned(hs.ScaleWarning, "no information", note="zero"),
    ),
    "4-neighbours": Case(
        "n_neighbors >= n",
        lambda: embed(hs.HeatSketch, X[:8]),
        Warned(UserWarning, "n_neighbors=15 but X has 8 distinct", note="all others"),
    ),
    "5-components": Case(
        "`DiffusionMap` with n_components >= n (duplicates of a neighbour graph count once)",
        lambda: hs.DiffusionMap(60).fit(X),
        Refused("n_components=60", "61 distinct", "got 60", "<= 59"),
    ),
    "alpha": Case(
        "alpha 1000",
        lambda: hs.DiffusionMap(2, alpha=1000).fit(X),
        Refused("alpha=1000 takes powers of the density out of the range of float64"),
    ),
    "42-broken": Case(
        "time 1.5 of `HeatSketch` (`DiffusionMap` has λ^1.5)",
        lambda: hs.HeatSketch(2, 1.5).fit(X),
        Refused("time=1.5", "whole", "filter='heat'"),
    ),
    "42-late": Case(
        "time 1e6",
        lambda: hs.DiffusionMap(2, 1e6, **DENSE).fit(X),
        Warned(
            hs.ScaleWarning,
            "beyond float64",
            "log_scale",
            note='correct, divided by exp(`diagnostics_["log_scale"]`)',
        ),
    ),
}

GIVEN = {
    "44-outlier": Case(
        "an outlier whose weights are zero in float64, and no diagonal",
        lambda: hs.bistochastic_normalize(np.pad(K - np.diag(np.diag(K)), (0, 1))),
        Refused("1 point(s)", "rows 60", "K_ii > 0"),
    ),
    "45-star": Case(
        "a star: no doubly stochastic scaling exists (the other normalizations are correct)",
        lambda: hs.bistochastic_normalize(STAR),
        Refused("No bistochastic scaling exists", "total support", "K_ii > 0"),
    ),
    "45-path": Case(
        "a path",
        lambda: hs.bistochastic_normalize(sparse.csr_matrix(PATHS[5])),
        Refused("No bistochastic scaling exists"),
    ),
    "47-distances": Case(
        "distances, or their squares",
        lambda: hs.Diffusion.from_affinity(
            np.linalg.norm(X[:, None] - X, axis=2),
        ),
        Warned(UserWarning, "looks like distances, not affinities"),
    ),
    "49-stopped": Case(
        "bistochastic scaling stopped by max_iter, off by less than 1e-3",
        lambda: hs.HeatSketch(2, normalization="bistochastic", max_iter=6, **DENSE).fit(X),
        Warned(hs.ConvergenceWarning, "in 6 iter", "raise max_iter"),
    ),
    "49-off": Case(
        "bistochastic scaling stopped by max_iter, off by more",
        lambda: hs.HeatSketch(2, normalization="bistochastic", max_iter=1, **DENSE).fit(X),
        Refused("after 1 iterations", "worst at rows", "raise max_iter"),
    ),
}
