"""The experiments beside the figures of *Sketching the heat kernel*."""

from papers.output import Experiment
from papers.sketching.noise import run_noise

EXPERIMENTS: dict[str, Experiment] = {
    "noise": Experiment("noise whose size differs from point to point", run_noise, 0.2),
}
