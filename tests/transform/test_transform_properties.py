import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hadamard
from transform.golden_cases import differing, function_name, golden_matrix

from hadamard_finder.transform import fwht, surface

# Shared machines stall, so no deadline.
property_test = settings(deadline=None, max_examples=40)

widths = st.integers(0, 9).map(lambda k: 1 << k)
batches = st.lists(st.integers(0, 4), max_size=3).map(tuple)
seeds = st.integers(0, 2**31)
algorithms = st.sampled_from(["butterfly", "matmul"])
dtypes = st.sampled_from([torch.float16, torch.bfloat16, torch.float32, torch.float64])


def random(seed, *shape, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@property_test
@given(seeds, batches, widths, algorithms)
def test_twice_is_n_times_the_identity(seed, batch, n, algorithm):
    x = random(seed, *batch, n)
    twice = fwht(fwht(x, algorithm=algorithm), algorithm=algorithm)
    torch.testing.assert_close(twice, n * x, rtol=1e-11, atol=1e-11)


@property_test
@given(seeds, widths, st.floats(-10, 10), st.floats(-10, 10), algorithms)
def test_linear(seed, n, a, b, algorithm):
    x, y = random(seed, 2, n), random(seed + 1, 2, n)
    both = fwht(a * x + b * y, algorithm=algorithm)
    apart = a * fwht(x, algorithm=algorithm) + b * fwht(y, algorithm=algorithm)
    torch.testing.assert_close(both, apart, rtol=1e-10, atol=1e-10)


@property_test
@given(seeds, widths, algorithms)
def test_symmetric(seed, n, algorithm):
    x, y = random(seed, n), random(seed + 1, n)
    torch.testing.assert_close(
        fwht(x, algorithm=algorithm) @ y, x @ fwht(y, algorithm=algorithm), rtol=1e-10, atol=1e-9
    )


@property_test
@given(seeds, widths)
def test_parseval(seed, n):
    x = random(seed, 3, n)
    torch.testing.assert_close(fwht(x, n**-0.5).norm(dim=-1), x.norm(dim=-1))


@property_test
@given(seeds, batches, widths, st.floats(-4, 4), algorithms)
def test_equals_the_dense_matrix(seed, batch, n, scale, algorithm):
    x = random(seed, *batch, n)
    dense = torch.from_numpy(hadamard(n).astype(np.float64))
    torch.testing.assert_close(
        fwht(x, scale, algorithm=algorithm), x @ dense * scale, rtol=1e-10, atol=1e-10
    )


@property_test
@given(seeds, st.sampled_from([12, 20, 28, 40]), st.integers(1, 400), st.floats(-4, 4))
def test_n_variants_equal_their_kronecker_matrix(seed, order, width, scale):
    x = random(seed, 3, width)
    whole = surface.padded_width(width, order)
    assert whole >= width
    matrix = torch.from_numpy(np.kron(golden_matrix(order), hadamard(whole // order))).double()
    dense = torch.nn.functional.pad(x, (0, whole - width)) @ matrix.T * scale
    y = getattr(surface, function_name(order))(x, scale)
    torch.testing.assert_close(y, dense[:, :width], rtol=1e-10, atol=1e-10)


@property_test
@given(seeds, st.integers(1, 700), st.floats(-4, 4))
def test_other_widths_are_padded_and_cut(seed, width, scale):
    x = random(seed, 2, width)
    whole = 1 << (width - 1).bit_length()
    dense = torch.nn.functional.pad(x, (0, whole - width)) @ torch.from_numpy(
        hadamard(whole).astype(np.float64)
    )
    torch.testing.assert_close(
        surface.hadamard_transform(x, scale), dense[:, :width] * scale, rtol=1e-10, atol=1e-10
    )


@property_test
@given(seeds, batches, widths, dtypes, st.randoms(use_true_random=False), algorithms)
def test_shape_and_strides_change_no_bit(seed, batch, n, dtype, shuffle, algorithm):
    x = random(seed, *batch, n).to(dtype)
    order = list(range(x.dim()))
    shuffle.shuffle(order)
    strided = x.permute(order).contiguous().permute([order.index(i) for i in range(x.dim())])
    y = fwht(strided, 0.3, algorithm=algorithm)
    assert y.dtype == dtype
    assert y.shape == x.shape
    assert y.is_contiguous()
    if algorithm == "butterfly":
        flat = fwht(x.reshape(-1, n), 0.3).reshape(x.shape)
        assert differing(y, flat) == 0


@pytest.mark.parametrize("order", [1, 12, 20, 28, 40])
@pytest.mark.parametrize("algorithm", ["butterfly", "matmul"])
def test_first_second_and_forward_derivatives(monkeypatch, order, algorithm):
    monkeypatch.setenv("HADAMARD_FINDER_ALGORITHM", algorithm)
    function = getattr(surface, function_name(order))
    # One row: gradcheck takes a forward for each element.
    x = random(0, 1, 5 if order == 1 else order + 1).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x: function(x, 0.3),
        (x,),
        check_forward_ad=True,
        check_batched_grad=True,
        check_batched_forward_grad=True,
        check_undefined_grad=False,
    )
    assert torch.autograd.gradgradcheck(lambda x: function(x, 0.3), (x,))
