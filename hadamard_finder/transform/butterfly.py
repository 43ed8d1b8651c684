"""The butterfly in plain torch operations, for every device and every kind of tensor.

Each stage is written out of place, so that torch.compile can fuse it and a tensor without data can
pass through. chunked.py holds the form that is fast in eager mode.
"""

from __future__ import annotations

import torch
from torch import Tensor

from hadamard_finder.transform.arguments import Scale


def butterfly(x: Tensor, scale: Scale, order: int, transposed: bool) -> Tensor:
    """(H_order kron H_{2^k}) x * scale along the last dimension, which is order * 2^k wide.

    Sums in float32 (float64 for float64), stride 1 first, then across the blocks from left to
    right, then the scale, then one rounding to x's dtype: what the CUDA kernel does.
    """
    wide = x.reshape(-1, order, x.shape[-1] // order)
    if x.dtype != torch.float64:
        wide = wide.to(torch.float32)
    stride = 1
    while stride < wide.shape[-1]:
        pairs = wide.reshape(-1, order, wide.shape[-1] // (2 * stride), 2, stride)
        low, high = pairs[..., 0, :], pairs[..., 1, :]
        wide = torch.stack((low + high, low - high), -2).reshape(wide.shape)
        stride *= 2
    if order > 1:
        wide = across_blocks(wide, order, transposed)
    return (wide * scale).to(x.dtype).reshape(x.shape)


def across_blocks(wide: Tensor, order: int, transposed: bool) -> Tensor:
    """The fixed matrix applied across dimension 1, each output summed strictly left to right."""
    matrix = signs_of(order, wide.dtype, wide.device)
    columns = (matrix if transposed else matrix.t()).unsqueeze(-1).unbind(0)
    total = wide[:, :1] * columns[0]
    for block in range(1, order):
        total = total + wide[:, block : block + 1] * columns[block]
    return total


def signs_of(order: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The fixed matrix of that order, made on the device.

    Each row travels as an integer inside a fill: a copy from the host would wait for a GPU, and is
    forbidden while a CUDA graph is captured.
    """
    # Here, because most processes never need the matrices, and building them takes a millisecond.
    from hadamard_finder.transform.matrices import PACKED

    bits = torch.arange(order, device=device)
    rows = torch.stack(
        [torch.full((), row, dtype=torch.int64, device=device) for row in PACKED[order]]
    )
    return ((rows.unsqueeze(1) >> bits) & 1).to(dtype) * 2 - 1
