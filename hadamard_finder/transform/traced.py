"""The operator inside torch.compile and torch.export."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hadamard_finder.transform.arguments import Scale
from hadamard_finder.transform.compiled import fused
from hadamard_finder.transform.entries import transform
from hadamard_finder.transform.settings import Algorithm


class Traced(torch.autograd.Function):
    """A Function, so that backward runs the stages in the forward order: the bits of eager mode."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, scale: Scale, order: int, transposed: bool, algorithm: Algorithm
    ) -> Tensor:
        ctx.arguments = scale, order, not transposed, algorithm
        return fused(x, scale, order, transposed)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return transform(gradients[0], *ctx.arguments), None, None, None, None
