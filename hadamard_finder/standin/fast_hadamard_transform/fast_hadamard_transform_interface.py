"""Stand-in for ``fast_hadamard_transform.fast_hadamard_transform_interface``.

This file may run more than once in a process. The functions live in hadamard_finder so that every
run binds the same objects, and what consumers hold can still be pickled by name.
"""

__hadamard_finder__ = True

from hadamard_finder.transform.surface import (
    HadamardTransform12NFn,
    HadamardTransform20NFn,
    HadamardTransform28NFn,
    HadamardTransform40NFn,
    HadamardTransformFn,
    hadamard_transform,
    hadamard_transform_12N,
    hadamard_transform_20N,
    hadamard_transform_28N,
    hadamard_transform_40N,
    hadamard_transform_ref,
)

try:
    import fast_hadamard_transform_cuda
except ImportError:  # None in sys.modules: somebody blocks the extension on purpose
    fast_hadamard_transform_cuda = None

__all__ = [
    "HadamardTransform12NFn",
    "HadamardTransform20NFn",
    "HadamardTransform28NFn",
    "HadamardTransform40NFn",
    "HadamardTransformFn",
    "hadamard_transform",
    "hadamard_transform_12N",
    "hadamard_transform_20N",
    "hadamard_transform_28N",
    "hadamard_transform_40N",
    "hadamard_transform_ref",
]


def __getattr__(name: str) -> object:
    # The real module imports SciPy for this one name; a quarter of a second for what nobody calls.
    if name != "hadamard":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from scipy.linalg import hadamard
    except ImportError:
        return None
    return hadamard
