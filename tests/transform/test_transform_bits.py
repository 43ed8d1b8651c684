"""Bit for bit: the golden vectors through every exact path, and every path against a reference."""

import pytest
import torch
from transform.golden_cases import CASES, differing, function_name, reference

from hadamard_finder.transform import surface
from hadamard_finder.transform.butterfly import butterfly
from hadamard_finder.transform.chunked import chunked_butterfly
from hadamard_finder.transform.compiled import fused

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def transform_of(case):
    return getattr(surface, function_name(case.order))


def test_there_are_123_cases():
    assert len(CASES) == 123


@every_case
def test_golden_eager(case):
    assert differing(transform_of(case)(case.x, case.scale), case.y) == 0


@every_case
def test_golden_under_vmap(case):
    x = case.x.expand(2, *case.x.shape).movedim(0, 1)
    y = torch.func.vmap(lambda row: transform_of(case)(row, case.scale), in_dims=1)(x)
    assert differing(y[0], case.y) == 0
    assert differing(y[1], case.y) == 0


@every_case
def test_golden_with_the_scale_in_a_tensor(case):
    assert differing(transform_of(case)(case.x, torch.tensor(case.scale)), case.y) == 0


@every_case
def test_golden_backward(case):
    x = torch.zeros_like(case.x, requires_grad=True)
    transform_of(case)(x, case.scale).backward(case.x)
    expected = case.y
    if case.order > 12:  # the matrix is not symmetric
        expected = reference(case.x, case.scale, case.order, transposed=True)
    assert differing(x.grad, expected) == 0


@every_case
def test_golden_in_the_traced_form(case):
    width = case.x.shape[-1]
    padded = torch.nn.functional.pad(case.x, (0, surface.padded_width(width, case.order) - width))
    y = fused(padded, case.scale, case.order, False)[..., :width]
    assert differing(y, case.y) == 0


@every_case
def test_the_reference_of_these_tests_is_golden(case):
    assert differing(reference(case.x, case.scale, case.order, False), case.y) == 0


SHAPES = [
    (1, 1, 2), (1, 70001, 2), (1, 4100, 8), (1, 1000, 64), (1, 4097, 64), (1, 1025, 256),
    (1, 513, 512), (1, 3, 16384), (1, 129, 4096), (1, 1, 1 << 17), (1, 3, 1 << 19),
    (12, 1, 12), (12, 130, 24), (20, 1000, 20), (28, 65, 28 * 128), (40, 3, 40 * 256),
    (40, 700, 40 * 64), (12, 1, 12 << 15), (40, 2, 40 << 14),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize(("order", "rows", "width"), SHAPES)
def test_chunks_tails_and_long_rows(order, rows, width, dtype):
    x = torch.randn(rows, width, generator=torch.Generator().manual_seed(width)).to(dtype)
    x[0, 0], x[-1, -1] = -0.0, float("inf")
    expected = butterfly(x, 0.3, order, True)
    assert differing(chunked_butterfly(x, 0.3, order, True), expected) == 0


@pytest.mark.parametrize("order", [1, 20])
@pytest.mark.parametrize("width", [64, 1024, 1 << 15])
def test_the_form_without_transposes_that_a_gpu_gets(monkeypatch, width, order):
    monkeypatch.setattr("hadamard_finder.transform.chunked._across", lambda *_: 1)
    x = torch.randn(5, order * width, generator=torch.Generator().manual_seed(0))
    assert differing(chunked_butterfly(x, 0.3, order, False), butterfly(x, 0.3, order, False)) == 0


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_number_of_threads_changes_no_bit(threads):
    x = torch.randn(700, 1024, generator=torch.Generator().manual_seed(0))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        y = chunked_butterfly(x, 0.3, 1, False)
    finally:
        torch.set_num_threads(before)
    assert differing(y, butterfly(x, 0.3, 1, False)) == 0


def test_float32_subnormals_are_kept():
    x = torch.full((1, 64), 1e-40)
    assert differing(surface.hadamard_transform(x)[:, 0], torch.tensor([64 * x[0, 0].item()])) == 0
    assert surface.hadamard_transform(x)[0, 0] > 0


def test_negative_zeros_keep_their_sign():
    x = torch.full((3, 16384), -0.0)
    assert torch.signbit(surface.hadamard_transform(x)[:, 0]).all()
    x = torch.full((300, 12), -0.0)
    assert differing(surface.hadamard_transform_12N(x), reference(x, 1.0, 12, False)) == 0
