"""Sampling the weights of neural networks: run the scripts of `ergodic` from Python, and open what they leave in xarray and ArviZ.

>>> result = ergodic.run("scripts/quickstart.rhai", steps=2000)
>>> result.value  # what the script ends with
>>> arviz.summary(result.open())  # the draws of its run
"""

from importlib import metadata as _metadata

from ._open import draws, open
from ._program import Error
from ._run import Result, grid, run

__all__ = ["Error", "Result", "draws", "grid", "open", "run"]

try:
    __version__ = _metadata.version("ergodic")
except _metadata.PackageNotFoundError:  # from a checkout
    __version__ = "0"
