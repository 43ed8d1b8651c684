"""The operator inside torch.func: grad, vjp, jvp, jacobians, hessian and vmap."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hadamard_finder.transform.arguments import Scale
from hadamard_finder.transform.entries import Eager, compute, transform
from hadamard_finder.transform.settings import Algorithm


class Functional(Eager):
    """Eager with a context set up apart from the forward, which torch.func insists on."""

    @staticmethod
    def forward(  # type: ignore[override]
        x: Tensor, scale: Scale, order: int, transposed: bool, algorithm: Algorithm
    ) -> Tensor:
        return compute(x, scale, order, transposed, algorithm)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # noqa: ARG004
        ctx.arguments = inputs[1:]

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        x: Tensor,
        scale: Scale,
        *rest: Any,
    ) -> tuple[Tensor, int]:
        x_dim, scale_dim = in_dims[:2]
        batch = x.unsqueeze(0) if x_dim is None else x.movedim(x_dim, 0)
        if scale_dim is None:
            return transform(batch, scale, *rest), 0
        # A scale for each sample: unrounded sums times the scales, then the one rounding.
        assert isinstance(scale, torch.Tensor)
        wide = batch if x.dtype == torch.float64 else batch.to(torch.float32)
        scales = scale.to(wide.dtype).view(info.batch_size, *(1,) * (batch.dim() - 1))
        return (transform(wide, 1.0, *rest) * scales).to(x.dtype), 0
