"""The experiments beside the figures of *Sketching the heat kernel*."""

from papers.output import Experiment
from papers.sketching.euclidean import run_euclidean
from papers.sketching.noise import run_noise
from papers.sketching.outliers import run_outliers

EXPERIMENTS: dict[str, Experiment] = {
    "noise": Experiment("noise whose size differs from point to point", run_noise, 0.7),
    "outliers": Experiment("1 to 8 outliers, near and far, on three manifolds", run_outliers, 1.5),
    "euclidean": Experiment("log L by Euclidean beside diffusion distance", run_euclidean, 2),
}
