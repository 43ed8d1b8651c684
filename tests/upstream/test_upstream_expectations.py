"""What the real package's test-suite asks of it, asked of the stand-in.

The same widths, dtypes and tolerances, forward and gradient. The reference is ours: a recursion in
float64 that needs kilobytes where upstream's dense matrix takes 8 GB at the largest width.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor

TOLERANCES = {
    torch.float32: {"rtol": 3e-4, "atol": 3e-3},
    torch.float16: {"rtol": 3e-3, "atol": 5e-3},
    torch.bfloat16: {"rtol": 1e-2, "atol": 5e-2},
}
DTYPES = [pytest.param(dtype, id=str(dtype).removeprefix("torch.")) for dtype in TOLERANCES]
WIDTHS = [*(1 << k for k in range(16)), 137]
ROWS = 15
MATRICES = Path(__file__).parents[1] / "data" / "hadamard_matrices.txt"


@pytest.fixture(scope="module")
def interface() -> ModuleType:
    import fast_hadamard_transform.fast_hadamard_transform_interface as found

    assert vars(found).get("__hadamard_finder__"), "the real package answers here"
    return found


@lru_cache
def sylvester(width: int) -> Tensor:
    """The matrix by its definition: the sign is the parity of the bits that two indices share."""
    signs = [[(-1.0) ** (i & j).bit_count() for j in range(width)] for i in range(width)]
    return torch.tensor(signs, dtype=torch.float64)


def reference(x: Tensor) -> Tensor:
    """H x by halves, highest index bit first; the stand-in begins with the lowest."""
    if x.shape[-1] <= 32:
        return x @ sylvester(x.shape[-1])
    low, high = x.chunk(2, -1)
    return torch.cat([reference(low + high), reference(low - high)], -1)


def matrix_of(order: int) -> Tensor:
    """Upstream's fixed matrix of this order, from a file and not from the code under test."""
    lines = MATRICES.read_text().splitlines()
    start = lines.index(f"order {order}") + 1
    rows = lines[start : start + order]
    return torch.tensor([[1.0 if sign == "+" else -1.0 for sign in row] for row in rows]).double()


def padded(x: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(x, (0, width - x.shape[-1]))


def check(
    transform: Callable[..., Tensor],
    wanted: Callable[[Tensor], Tensor],
    width: int,
    dtype: torch.dtype,
) -> None:
    generator = torch.Generator().manual_seed(width)
    x = torch.randn(ROWS, width, generator=generator).to(dtype).requires_grad_()
    exact = x.detach().double().requires_grad_()
    gradient = torch.randn(ROWS, width, generator=generator).to(dtype)
    scale = width**-0.5

    y = transform(x, scale=scale)
    y.backward(gradient)
    y_exact = wanted(exact)[..., :width] * scale
    y_exact.backward(gradient.double())

    assert x.grad is not None
    assert exact.grad is not None
    assert y.dtype == x.grad.dtype == dtype
    torch.testing.assert_close(y.detach().double(), y_exact.detach(), **TOLERANCES[dtype])
    torch.testing.assert_close(x.grad.double(), exact.grad, **TOLERANCES[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_powers_of_two_and_one_that_is_none(
    interface: ModuleType, width: int, dtype: torch.dtype
) -> None:
    whole = 1 << (width - 1).bit_length()

    check(interface.hadamard_transform, lambda x: reference(padded(x, whole)), width, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("power", [1, 4, 64, 1024])  # 1024 of 40 is the widest row upstream takes
@pytest.mark.parametrize("order", [12, 20, 28, 40])
def test_multiples_of_the_fixed_matrices(
    interface: ModuleType, order: int, power: int, dtype: torch.dtype
) -> None:
    matrix = matrix_of(order)
    transform = getattr(interface, f"hadamard_transform_{order}N")

    def wanted(x: Tensor) -> Tensor:
        blocks = reference(x.reshape(-1, order, power))
        return torch.einsum("ij,bjk->bik", matrix, blocks).reshape(x.shape)

    # The gradient is held to the transpose. Upstream's applies 20N, 28N and 40N once more.
    check(transform, wanted, order * power, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", [12, 20, 28, 40])
def test_widths_between_the_multiples(
    interface: ModuleType, order: int, dtype: torch.dtype
) -> None:
    width, power = 7 * order + 5, 8
    matrix = matrix_of(order)
    transform = getattr(interface, f"hadamard_transform_{order}N")

    def wanted(x: Tensor) -> Tensor:
        blocks = reference(padded(x, order * power).reshape(-1, order, power))
        return torch.einsum("ij,bjk->bik", matrix, blocks).reshape(len(x), -1)

    check(transform, wanted, width, dtype)


def test_the_reference_of_this_file_is_the_matrix_of_the_definition() -> None:
    assert torch.equal(reference(torch.eye(256).double()), sylvester(256))
