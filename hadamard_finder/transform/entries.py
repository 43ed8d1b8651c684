"""One linear operator, and its entries into PyTorch's transforms.

Four entries, because no single form of autograd.Function is fast in eager mode, works inside
torch.func and compiles: a custom_op returns zeros from torch.func.jvp, setup_context costs 36
microseconds a call, and Dynamo refuses a jvp once it needs a gradient. Each Function class takes
a third of a millisecond to make, so those that not every process needs wait in their own modules.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hadamard_finder.transform.arguments import Scale
from hadamard_finder.transform.butterfly import butterfly
from hadamard_finder.transform.chunked import chunked_butterfly
from hadamard_finder.transform.settings import Algorithm


def transform(
    x: Tensor, scale: Scale, order: int, transposed: bool, algorithm: Algorithm
) -> Tensor:
    """(H_order kron H_{2^k}) x * scale along a last dimension of order * 2^k elements."""
    if torch.compiler.is_compiling():
        from hadamard_finder.transform.traced import Traced

        return _apply(Traced, x, scale, order, transposed, algorithm)
    levels = torch._C._functorch.get_interpreter_stack()
    if levels:
        if any(level.key() == torch._C._functorch.TransformType.Functionalize for level in levels):
            # functionalize has no rule for a Function of any kind.
            return butterfly(x, scale, order, transposed)
        from hadamard_finder.transform.functional import Functional

        return _apply(Functional, x, scale, order, transposed, algorithm)
    if (x.requires_grad and torch.is_grad_enabled()) or _forward_mode():
        return _apply(Eager, x, scale, order, transposed, algorithm)
    return compute(x, scale, order, transposed, algorithm)


def _apply(function: type[torch.autograd.Function], *arguments: Any) -> Tensor:
    result: Tensor = function.apply(*arguments)  # type: ignore[no-untyped-call]
    return result


def _forward_mode() -> bool:
    """Whether a dual level of forward-mode AD is open."""
    return torch.autograd.forward_ad._current_level >= 0


def compute(x: Tensor, scale: Scale, order: int, transposed: bool, algorithm: Algorithm) -> Tensor:
    if not _is_plain(x):
        return butterfly(x, scale, order, transposed)
    if algorithm == "matmul":
        from hadamard_finder.transform.matmul import matmul, precise_enough

        if precise_enough(x, scale):
            return matmul(x, scale, order, transposed)
    if algorithm == "compiled":
        from hadamard_finder.transform.compiled import compiled_butterfly

        return compiled_butterfly(x, scale, order, transposed)
    return chunked_butterfly(x, scale, order, transposed)


def _is_plain(x: Tensor) -> bool:
    """Whether kernels that write into buffers may run: on data, with nobody recording the calls."""
    return (
        type(x) in (torch.Tensor, torch.nn.Parameter)
        and x.device.type in ("cpu", "cuda", "xpu")
        and torch._C._len_torch_dispatch_stack() == 0
        # What gradcheck and is_grads_batched make, outside torch.func.
        and not torch._C._functorch.is_legacy_batchedtensor(x)
    )


class Eager(torch.autograd.Function):
    """Where autograd records or carries tangents."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, scale: Scale, order: int, transposed: bool, algorithm: Algorithm
    ) -> Tensor:
        ctx.arguments = scale, order, transposed, algorithm
        return compute(x, scale, order, transposed, algorithm)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        scale, order, transposed, algorithm = ctx.arguments
        return transform(gradients[0], scale, order, not transposed, algorithm), *(None,) * 4

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        return transform(tangents[0], *ctx.arguments)
