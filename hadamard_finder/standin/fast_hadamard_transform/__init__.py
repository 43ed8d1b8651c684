"""Stand-in for Dao-AILab's ``fast_hadamard_transform``, provided by hadamard_finder.

Same names and results as the CUDA package, in pure torch, on every device.
"""

# First: the finder knows by it that the extension must be the stand-in, too.
__hadamard_finder__ = True

from fast_hadamard_transform.fast_hadamard_transform_interface import hadamard_transform

__version__ = "1.1.0+hadamard.finder"

__all__ = ["hadamard_transform"]
