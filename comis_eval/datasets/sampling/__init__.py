"""A stratified sample of real queries, drawn from a log to be labelled."""

from comis_eval.datasets.sampling.sample import Drawn, Sample, Stratum, draw
from comis_eval.datasets.sampling.write import write_sample

__all__ = ["Drawn", "Sample", "Stratum", "draw", "write_sample"]
