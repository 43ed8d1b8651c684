"""One linear operator, and its entries into autograd."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hadamard_finder.transform.arguments import Scale
from hadamard_finder.transform.butterfly import butterfly
from hadamard_finder.transform.cpu import cpu_butterfly
from hadamard_finder.transform.settings import Algorithm


def transform(
    x: Tensor, scale: Scale, order: int, transposed: bool, algorithm: Algorithm
) -> Tensor:
    """(H_order kron H_{2^k}) x * scale along a last dimension of order * 2^k elements."""
    result: Tensor = _Eager.apply(x, scale, order, transposed, algorithm)  # type: ignore[no-untyped-call]
    return result


class _Eager(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, scale: Scale, order: int, transposed: bool, algorithm: Algorithm
    ) -> Tensor:
        ctx.arguments = scale, order, not transposed, algorithm
        if x.device.type == "cpu":
            return cpu_butterfly(x, scale, order, transposed)
        return butterfly(x, scale, order, transposed)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return transform(gradients[0], *ctx.arguments), None, None, None, None
