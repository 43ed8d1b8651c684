"""Megatron-LM's DeepSeek sparse attention, unmodified, without the CUDA package.

Needs `pip install megatron-core==0.16.1` beside hadamard_finder; installs nothing itself.

What to expect: the line "served by" names the module that Megatron bound (the stand-in where
fast_hadamard_transform cannot be built), then forward and backward of `rotate_activation` on a
bfloat16 activation agree with the dense Hadamard matrix. Without hadamard_finder Megatron binds
None and `rotate_activation` stops at an assertion.
"""

import sys

import torch

try:
    from megatron.core.transformer.experimental_attention_variant import dsa
except ImportError as error:
    sys.exit(
        f"this example runs Megatron-LM's own code: pip install megatron-core==0.16.1 ({error})"
    )


def hadamard_matrix(n: int) -> torch.Tensor:
    """Sylvester's construction, the slow and obvious way."""
    matrix = torch.ones(1, 1)
    while len(matrix) < n:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return matrix


def main() -> None:
    sequence, batch, heads, width = 256, 2, 8, 128
    torch.manual_seed(0)
    x = torch.randn(sequence, batch, heads, width).bfloat16().requires_grad_()
    gradient = torch.randn(x.shape).bfloat16()

    print(f"served by    {sys.modules[dsa.hadamard_transform.__module__].__file__}")
    y = dsa.rotate_activation(x)
    y.backward(gradient)
    print(f"forward      {tuple(y.shape)} {y.dtype}")

    reference = hadamard_matrix(width) * width**-0.5
    expected = (x.detach().float() @ reference).bfloat16()
    expected_gradient = (gradient.float() @ reference).bfloat16()
    torch.testing.assert_close(y.detach(), expected)
    torch.testing.assert_close(x.grad, expected_gradient)
    error = (y.detach().float() - expected.float()).abs().max().item()
    print(f"against the dense matrix: largest difference {error:.1e}, gradient agrees too")


if __name__ == "__main__":
    main()
