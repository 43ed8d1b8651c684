"""The transform inside a user's own `torch.compile(fullgraph=True)`, forward and backward.

Needs torch, hadamard_finder and a C++ compiler (inductor's on a CPU; without one the graph is
captured and run as it is, by the backend "aot_eager").

What to expect: one graph for all batch sizes, no graph break, and results and gradients that equal
the eager ones bit for bit. The first run takes half a minute or more, most of it inductor's own.
"""

import shutil
from collections.abc import Callable

import torch
from fast_hadamard_transform import hadamard_transform

BACKEND = "inductor" if shutil.which("c++") or shutil.which("g++") else "aot_eager"


def rotated_gate(x: torch.Tensor) -> torch.Tensor:
    return hadamard_transform(x, scale=x.shape[-1] ** -0.5).relu()


def with_gradient(
    function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    leaf = x.clone().requires_grad_()
    y = function(leaf)
    (gradient,) = torch.autograd.grad(y, leaf, torch.ones_like(y))
    return y.detach(), gradient


def main() -> None:
    compiled = torch.compile(rotated_gate, fullgraph=True, dynamic=True, backend=BACKEND)
    torch.manual_seed(0)
    for batch in (4, 9, 30):
        x = torch.randn(batch, 256).bfloat16()
        y, gradient = with_gradient(compiled, x)
        y_eager, gradient_eager = with_gradient(rotated_gate, x)
        assert torch.equal(y, y_eager)
        assert torch.equal(gradient, gradient_eager)
        print(f"batch {batch:>2}: forward and backward equal eager bit for bit")
    print(f"compiled as one graph by {BACKEND}")


if __name__ == "__main__":
    main()
