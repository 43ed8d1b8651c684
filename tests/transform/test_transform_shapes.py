"""Edge shapes, and how much memory a call takes beside its input and output."""

import itertools

import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from transform.golden_cases import differing, reference

from hadamard_finder.transform import fwht, surface
from hadamard_finder.transform.compiled import fused

MIB = 1 << 20


@pytest.mark.parametrize("algorithm", ["butterfly", "matmul", "compiled"])
@pytest.mark.parametrize("shape", [(0, 8), (3, 0, 8), (0, 0, 1), (0, 1 << 20)], ids=str)
def test_empty_batches(shape, algorithm):
    x = torch.zeros(shape, requires_grad=True)
    y = fwht(x, algorithm=algorithm)
    assert y.shape == shape
    y.sum().backward()
    assert x.grad.shape == shape


def test_empty_batches_of_the_stand_in():
    for width in (5, 24, 480):
        assert surface.hadamard_transform(torch.zeros(0, width)).shape == (0, width)
        assert surface.hadamard_transform_12N(torch.zeros(2, 0, width)).shape == (2, 0, width)


@pytest.mark.parametrize("algorithm", ["butterfly", "matmul"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_widths_one_and_two_and_one_dimension(dtype, algorithm):
    x = torch.tensor([3.0, 5.0], dtype=dtype)
    assert fwht(x, algorithm=algorithm).tolist() == [8.0, -2.0]
    assert fwht(x[:1], 0.5, algorithm=algorithm).tolist() == [1.5]
    assert fwht(x[:1], 0.5, algorithm=algorithm).shape == (1,)
    assert fwht(x.expand(3, 4, 2), algorithm=algorithm)[2, 3].tolist() == [8.0, -2.0]
    y = fwht(x[:1], algorithm=algorithm)
    y.zero_()
    assert x[0] == 3


def layouts():
    base = torch.randn(64, 33, 48, 40, generator=torch.Generator().manual_seed(0))
    yield "transposed", base.transpose(0, 3)
    yield "sliced", base[:, ::2, :, 4:36]
    yield "sliced with a step", base[..., :32:2]
    yield "offset", base[1:, 1:, 1:, 8:40]
    yield "expanded", base[:, :1, :1, :32].expand(64, 8, 16, 32)
    yield "expanded along the last", base[:, :2, :2, :1].expand(64, 2, 2, 512)
    yield "channels last", base[..., :32].contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("algorithm", ["butterfly", "matmul"])
@pytest.mark.parametrize("x", [pytest.param(x, id=name) for name, x in layouts()])
def test_layouts(x, algorithm):
    expected = fwht(x.contiguous(), 0.3, algorithm=algorithm)
    y = fwht(x, 0.3, algorithm=algorithm)
    assert y.is_contiguous()
    if algorithm == "butterfly":
        assert differing(y, expected) == 0
    torch.testing.assert_close(y, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("width", [1 << 16, 1 << 20])
def test_long_rows(width, dtype):
    x = torch.randn(1, width, generator=torch.Generator().manual_seed(0)).to(dtype)
    scale = width**-0.5
    assert differing(fwht(x, scale), reference(x, scale, 1, False)) == 0
    assert differing(fused(x, scale, 1, False), reference(x, scale, 1, False)) == 0
    product = fwht(x, scale, algorithm="matmul").float()
    assert (product - fwht(x.float(), scale)).norm() < 4e-3 * product.norm()


def test_long_rows_of_the_stand_in():
    x = torch.randn(2, 40001, generator=torch.Generator().manual_seed(0))
    assert differing(surface.hadamard_transform(x), reference(x, 1.0, 1, False)) == 0
    assert differing(surface.hadamard_transform_12N(x), reference(x, 1.0, 12, False)) == 0


@pytest.mark.parametrize(("order", "width"), [(12, 12), (12, 24), (20, 7), (28, 28), (40, 3)])
def test_n_variants_at_the_narrow_widths_where_the_kernel_errs(order, width):
    x = torch.randn(3, width, generator=torch.Generator().manual_seed(0))
    function = getattr(surface, f"hadamard_transform_{order}N")
    assert differing(function(x), reference(x, 1.0, order, False)) == 0


def peak(function):
    """The most bytes that existed at once beyond those before the call."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        kept = function()
    events = recorded.profiler.kineto_results.events()
    now = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now)
    del kept
    return most


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("algorithm", "width"),
    [
        *itertools.product(["butterfly", "matmul"], [64, 512, 16384, 1 << 20]),
        *itertools.product(["compiled"], [512, 16384, 1 << 20]),
    ],
)
def test_peak_memory(width, dtype, algorithm):
    x = torch.zeros(4 * MIB // width if width < 1 << 20 else 1, width, dtype=dtype)
    size = x.numel() * x.element_size()
    before = torch.get_num_threads()
    torch.set_num_threads(2)  # the chunks grow with the threads
    try:
        fwht(x, 0.5, algorithm=algorithm)
        most = peak(lambda: fwht(x, 0.5, algorithm=algorithm))
    finally:
        torch.set_num_threads(before)
    assert size <= most <= size + 5 * MIB
