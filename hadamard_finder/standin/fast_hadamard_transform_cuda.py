"""Stand-in for the extension module ``fast_hadamard_transform_cuda``."""

__hadamard_finder__ = True

from hadamard_finder.transform.surface import (
    fast_hadamard_transform,
    fast_hadamard_transform_12N,
    fast_hadamard_transform_20N,
    fast_hadamard_transform_28N,
    fast_hadamard_transform_40N,
)

__all__ = [
    "fast_hadamard_transform",
    "fast_hadamard_transform_12N",
    "fast_hadamard_transform_20N",
    "fast_hadamard_transform_28N",
    "fast_hadamard_transform_40N",
]
