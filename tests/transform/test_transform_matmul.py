"""How exact the matmul algorithm is, as its docstring says."""

import math

import pytest
import torch
from transform.golden_cases import function_name

from hadamard_finder.transform import fwht, surface

WIDTHS = [64, 128, 512, 1024, 4096, 16384]


def given(rows, width, dtype):
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(width)).to(dtype)


@pytest.mark.parametrize("width", [*WIDTHS, 1 << 19])
def test_relative_error_before_rounding(width):
    x = given(max((1 << 18) // width, 1), width, torch.float32)
    exact = fwht(x.double(), width**-0.5)
    error = (fwht(x, width**-0.5, algorithm="matmul") - exact).norm() / exact.norm()
    assert error <= 4 * torch.finfo(torch.float32).eps * math.log2(width)


@pytest.mark.parametrize("scale", ["number", "tensor"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("width", WIDTHS)
def test_how_many_16_bit_results_differ_and_by_how_much(width, dtype, scale):
    x = given((1 << 20) // width, width, dtype)
    value = width**-0.5
    value = torch.tensor(value) if scale == "tensor" else value
    y, exact = fwht(x, value, algorithm="matmul"), fwht(x, value)
    allowed = 3e-4 if dtype == torch.bfloat16 else 1e-3 if width <= 4096 else 3e-3
    assert (y != exact).float().mean() <= allowed
    # A last bit, except where almost everything cancelled.
    off = (y.float() - exact.float()).abs()
    assert (off <= exact.float().abs() * torch.finfo(dtype).eps + width * 1e-6).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("order", [12, 20, 28, 40])
@pytest.mark.parametrize("blocks", [1, 8, 4096])
def test_n_variants_and_their_gradients(monkeypatch, order, blocks, dtype):
    function = getattr(surface, function_name(order))
    results = {}
    for algorithm in ("butterfly", "matmul"):
        monkeypatch.setenv("HADAMARD_FINDER_ALGORITHM", algorithm)
        x = given(3, order * blocks, dtype).requires_grad_()
        y = function(x, 0.1)
        y.backward(x.detach())
        results[algorithm] = torch.stack((y.detach(), x.grad)).double()
    off = (results["matmul"] - results["butterfly"]).norm() / results["butterfly"].norm()
    assert off <= {torch.float64: 1e-14, torch.float32: 1e-6}.get(dtype, torch.finfo(dtype).eps)


def test_float64_is_computed_in_float64():
    x = given(30, 256, torch.float64)
    torch.testing.assert_close(fwht(x, algorithm="matmul"), fwht(x), rtol=1e-13, atol=1e-12)


def test_a_cpu_without_16_bit_products_takes_float32_ones(monkeypatch):
    x = given(30, 64, torch.bfloat16)
    expected = fwht(x, algorithm="matmul")
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False, raising=False)
    y = fwht(x, algorithm="matmul")
    assert (y != expected).float().mean() <= 1e-2
