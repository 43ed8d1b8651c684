"""The functions and classes that the stand-in offers under the real package's names, and fwht.

They live here, not in the stand-in's files: those run again on a reload and must then yield the
same objects, or what consumers hold would no longer pickle.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hadamard_finder.transform import settings
from hadamard_finder.transform.arguments import check_input, padded_width, plain_scale
from hadamard_finder.transform.distributed import is_dtensor, on_shards
from hadamard_finder.transform.entries import transform
from hadamard_finder.transform.settings import ALGORITHMS, Algorithm, is_algorithm


def fwht(x: Tensor, scale: Any = 1.0, *, algorithm: Algorithm | None = None) -> Tensor:
    """The Walsh-Hadamard transform of the last dimension, times scale, as a new tensor.

    x is a float16, bfloat16, float32 or float64 tensor of any strides whose last dimension is a
    power of two. Sums run in float32 (float64 for float64); the result has x's shape and dtype and
    was rounded once. scale is a number or a tensor with one element; no gradient reaches it.

    algorithm is butterfly or compiled, both bit for bit what the CUDA kernel of
    fast-hadamard-transform computes, or matmul, which is faster and rounds differently. None takes
    HADAMARD_FINDER_ALGORITHM, else butterfly.

    Raises TypeError for other inputs, ValueError for another width or an unknown algorithm.
    """
    if algorithm is not None and not is_algorithm(algorithm):
        raise ValueError(f"unknown algorithm {algorithm!r}; allowed: {', '.join(ALGORITHMS)}")
    check_input(x)
    width = x.shape[-1]
    if width < 1 or width & (width - 1):
        raise ValueError(
            f"the last dimension must be a power of two, got {width}; "
            "fast_hadamard_transform.hadamard_transform pads with zeros"
        )
    return _padded(x, scale, 1, algorithm=algorithm)


def _padded(
    x: Tensor, scale: Any, order: int, transposed: bool = False, algorithm: Algorithm | None = None
) -> Tensor:
    """The transform along the last dimension, zero-padded where needed and cut back."""
    check_input(x)
    if is_dtensor(x):
        return on_shards(x, lambda shard: _padded(shard, scale, order, transposed, algorithm))
    if algorithm is None:
        # A trace has one form for all algorithms, and should not guard on the environment.
        compiling = torch.compiler.is_compiling()
        algorithm = settings.DEFAULT if compiling else settings.algorithm()
    width = x.shape[-1]
    if width == 0:
        raise ValueError("the last dimension must be 1 wide or more, got 0")
    whole = padded_width(width, order)
    if whole == width:
        return transform(x, plain_scale(scale), order, transposed, algorithm)
    x = torch.nn.functional.pad(x, (0, whole - width))
    result = transform(x, plain_scale(scale), order, transposed, algorithm)
    return result[..., :width].contiguous()


def hadamard_transform(x: Tensor, scale: Any = 1.0) -> Tensor:
    """The Walsh-Hadamard transform of the last dimension, times scale.

    Other widths than powers of two are padded with zeros to the next one, and the result is cut
    back. Dtypes, rounding and errors as in hadamard_finder.fwht; any width of 1 or more works.
    """
    return _padded(x, scale, 1)


def hadamard_transform_12N(x: Tensor, scale: Any = 1.0) -> Tensor:  # noqa: N802
    """(H_12 kron H_{2^k}) x * scale along the last dimension, zero-padded to 12 * 2^k."""
    return _padded(x, scale, 12)


def hadamard_transform_20N(x: Tensor, scale: Any = 1.0) -> Tensor:  # noqa: N802
    """(H_20 kron H_{2^k}) x * scale along the last dimension, zero-padded to 20 * 2^k."""
    return _padded(x, scale, 20)


def hadamard_transform_28N(x: Tensor, scale: Any = 1.0) -> Tensor:  # noqa: N802
    """(H_28 kron H_{2^k}) x * scale along the last dimension, zero-padded to 28 * 2^k."""
    return _padded(x, scale, 28)


def hadamard_transform_40N(x: Tensor, scale: Any = 1.0) -> Tensor:  # noqa: N802
    """(H_40 kron H_{2^k}) x * scale along the last dimension, zero-padded to 40 * 2^k."""
    return _padded(x, scale, 40)


def hadamard_transform_ref(x: Tensor, scale: Any = 1.0) -> Tensor:
    """The transform as a product with the dense matrix, to check the fast one against.

    Needs SciPy; raises ImportError where it is missing. Sums in x's own dtype.
    """
    try:
        from scipy.linalg import (  # type: ignore[import-untyped, import-not-found, unused-ignore]
            hadamard,
        )
    except ImportError as error:
        raise ImportError(
            "hadamard_transform_ref takes its matrix from SciPy: pip install scipy"
        ) from error
    check_input(x)
    width = x.shape[-1]
    whole = padded_width(width, 1)
    matrix = torch.tensor(hadamard(whole, dtype=float), dtype=x.dtype, device=x.device)
    padded = torch.nn.functional.pad(x, (0, whole - width))
    return (torch.nn.functional.linear(padded, matrix) * plain_scale(scale))[..., :width]


def _function(name: str, order: int) -> type[torch.autograd.Function]:
    """A genuine Function, as in the real package: apply(x, scale=1.0) for one kind of transform."""

    class TransformFn(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, scale: Any = 1.0) -> Tensor:
            ctx.scale = scale
            return _padded(x, scale, order)

        @staticmethod
        def backward(ctx: Any, *gradients: Tensor) -> Any:
            return _padded(gradients[0], ctx.scale, order, transposed=True), None

    TransformFn.__name__ = TransformFn.__qualname__ = name
    return TransformFn


HadamardTransformFn = _function("HadamardTransformFn", 1)
HadamardTransform12NFn = _function("HadamardTransform12NFn", 12)
HadamardTransform20NFn = _function("HadamardTransform20NFn", 20)
HadamardTransform28NFn = _function("HadamardTransform28NFn", 28)
HadamardTransform40NFn = _function("HadamardTransform40NFn", 40)


def fast_hadamard_transform(x: Tensor, scale: Any) -> Tensor:
    """What the extension calls hadamard_transform."""
    return _padded(x, scale, 1)


def fast_hadamard_transform_12N(x: Tensor, scale: Any) -> Tensor:  # noqa: N802
    """What the extension calls hadamard_transform_12N."""
    return _padded(x, scale, 12)


def fast_hadamard_transform_20N(x: Tensor, scale: Any) -> Tensor:  # noqa: N802
    """What the extension calls hadamard_transform_20N."""
    return _padded(x, scale, 20)


def fast_hadamard_transform_28N(x: Tensor, scale: Any) -> Tensor:  # noqa: N802
    """What the extension calls hadamard_transform_28N."""
    return _padded(x, scale, 28)


def fast_hadamard_transform_40N(x: Tensor, scale: Any) -> Tensor:  # noqa: N802
    """What the extension calls hadamard_transform_40N."""
    return _padded(x, scale, 40)


# Pickle stores a function as module and name. Under the real names, what was pickled beside the
# real package loads beside the stand-in, and the other way round.
_INTERFACE = "fast_hadamard_transform.fast_hadamard_transform_interface"
for _public in (
    hadamard_transform,
    hadamard_transform_12N,
    hadamard_transform_20N,
    hadamard_transform_28N,
    hadamard_transform_40N,
    hadamard_transform_ref,
    HadamardTransformFn,
    HadamardTransform12NFn,
    HadamardTransform20NFn,
    HadamardTransform28NFn,
    HadamardTransform40NFn,
):
    _public.__module__ = _INTERFACE
for _raw in (
    fast_hadamard_transform,
    fast_hadamard_transform_12N,
    fast_hadamard_transform_20N,
    fast_hadamard_transform_28N,
    fast_hadamard_transform_40N,
):
    _raw.__module__ = "fast_hadamard_transform_cuda"
