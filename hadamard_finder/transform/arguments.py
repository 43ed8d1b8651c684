"""Checks what callers pass, and pads to the width that a transform needs."""

from __future__ import annotations

from typing import SupportsFloat

import torch
from torch import Tensor

Scale = float | Tensor


def check_input(x: object) -> None:
    """Raises TypeError unless x is a floating-point tensor with at least one dimension."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"expected a torch.Tensor, got {type(x).__name__}; {_WORKS}")
    if x.dtype not in (torch.bfloat16, torch.float32, torch.float16, torch.float64):
        raise TypeError(f"cannot transform a tensor of dtype {x.dtype}; {_WORKS}")
    if x.dim() == 0:
        raise TypeError(f"cannot transform a 0-dimensional tensor; {_WORKS}")


_WORKS = "a tensor of float16, bfloat16, float32 or float64 with at least one dimension works"


def plain_scale(scale: SupportsFloat | Tensor) -> Scale:
    """The scale as a number, or as a 0-dimensional tensor that no gradient reaches.

    A tensor is never read here: on a GPU that would wait for all work queued so far.
    """
    if isinstance(scale, (float, int)):
        return scale
    if isinstance(scale, torch.Tensor):
        if scale.numel() != 1 or scale.dtype.is_complex:
            raise TypeError(
                "scale must be a real number or a tensor with one real element, "
                f"got {scale.dtype} of shape {tuple(scale.shape)}"
            )
        return scale.detach().reshape(())
    if isinstance(scale, (torch.SymFloat, torch.SymInt)):
        return scale  # type: ignore[return-value]  # what torch.compile and make_fx pass
    if not hasattr(type(scale), "__float__"):
        raise TypeError(
            "scale must be a real number or a tensor with one real element, "
            f"got {type(scale).__name__}"
        )
    return float(scale)


def padded_width(width: int, order: int) -> int:
    """The smallest order * 2^k that holds width; order itself for narrower rows."""
    blocks = -(-width // order)
    return order * (1 << max(blocks - 1, 0).bit_length())
