"""autograd, torch.func and what is built on them."""

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import functionalize, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint
from transform.golden_cases import differing

from hadamard_finder.transform import fwht, surface

N = 8


@pytest.fixture(params=["butterfly", "matmul"], autouse=True)
def algorithm(request, monkeypatch):
    monkeypatch.setenv("HADAMARD_FINDER_ALGORITHM", request.param)


@pytest.fixture
def x():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(3, N, dtype=torch.float64, generator=generator)


def f(x):
    return fwht(x, 0.5)


def dense():
    return fwht(torch.eye(N, dtype=torch.float64), algorithm="butterfly")


def test_grad_and_double_backward(x):
    x.requires_grad_()
    (first,) = torch.autograd.grad(f(x).pow(3).sum(), x, create_graph=True)
    torch.testing.assert_close(first, f(3 * f(x) ** 2))
    (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(second, f(6 * f(x) * f(torch.ones_like(x))))


def test_func_grad_vjp_jvp(x):
    torch.testing.assert_close(grad(lambda x: (f(x) ** 2).sum())(x), f(2 * f(x)))
    torch.testing.assert_close(vjp(f, x)[1](x)[0], f(x))
    value, tangent = jvp(f, (x,), (2 * x,))
    torch.testing.assert_close((value, tangent), (f(x), f(2 * x)))


def test_func_jacobians_and_hessian(x):
    row = x[0]
    torch.testing.assert_close(jacfwd(f)(row), dense() / 2)
    torch.testing.assert_close(jacrev(f)(row), dense() / 2)
    eye = torch.eye(N, dtype=torch.float64)
    torch.testing.assert_close(hessian(lambda r: (f(r) ** 2).sum())(row), eye * N / 2)
    torch.testing.assert_close(jacfwd(jacrev(lambda r: f(r) ** 2))(row).sum(0), eye * N / 2)


def test_the_jacobian_of_an_unsymmetric_matrix():
    row = torch.randn(20, dtype=torch.float64)
    matrix = surface.hadamard_transform_20N(torch.eye(20, dtype=torch.float64)).T
    torch.testing.assert_close(jacrev(surface.hadamard_transform_20N)(row), matrix)
    torch.testing.assert_close(jacfwd(surface.hadamard_transform_20N)(row), matrix)
    assert not torch.equal(matrix, matrix.T)


@pytest.mark.parametrize("dim", [0, 1, 2, -2])
def test_vmap_over_any_dimension(dim):
    x = torch.randn(4, 5, 6, N, dtype=torch.float64)
    torch.testing.assert_close(vmap(f, in_dims=dim, out_dims=dim)(x), f(x))


def test_vmap_over_the_last_dimension_transforms_the_one_before():
    x = torch.randn(4, N, 3, dtype=torch.float64)
    torch.testing.assert_close(vmap(f, in_dims=2)(x), f(x.movedim(2, 0)))


def test_nested_vmap_and_vmap_of_grad(x):
    x3 = torch.stack((x, 2 * x))
    torch.testing.assert_close(vmap(vmap(f))(x3), f(x3))
    x4 = x3.unsqueeze(2).expand(2, 3, 4, N)
    torch.testing.assert_close(vmap(vmap(f, in_dims=1, out_dims=1))(x4), f(x4))
    each = vmap(grad(lambda r: (f(r) ** 3).sum()))(x)
    torch.testing.assert_close(each, f(3 * f(x) ** 2))


def test_vmap_over_the_scale():
    x = torch.randn(3, N).bfloat16()
    scales = torch.tensor([0.1, 0.2, 0.3])
    both = vmap(lambda row, scale: fwht(row, scale, algorithm="butterfly"))(x, scales)
    only = vmap(lambda scale: fwht(x, scale, algorithm="butterfly"))(scales)
    for i, scale in enumerate(scales.tolist()):
        assert differing(both[i], fwht(x[i], scale, algorithm="butterfly")) == 0
        assert differing(only[i], fwht(x, scale, algorithm="butterfly")) == 0


def test_forward_mode(x):
    with forward_ad.dual_level():
        value, tangent = forward_ad.unpack_dual(f(forward_ad.make_dual(x, 2 * x)))
    torch.testing.assert_close((value, tangent), (f(x), f(2 * x)))


def test_functionalize_and_make_fx(x):
    torch.testing.assert_close(functionalize(f)(x), f(x))
    slope = grad(lambda x: (f(x) ** 2).sum())
    torch.testing.assert_close(functionalize(slope)(x), slope(x))
    torch.testing.assert_close(make_fx(f)(x)(2 * x), f(2 * x))
    torch.testing.assert_close(make_fx(slope)(x)(2 * x), slope(2 * x))


def test_activation_checkpointing(x):
    def block(x):
        return f(torch.sin(f(x)))

    slopes = []
    for run in (block, lambda x: checkpoint(block, x, use_reentrant=False)):
        leaf = x.clone().requires_grad_()
        run(leaf).pow(2).sum().backward()
        slopes.append(leaf.grad)
    assert differing(*slopes) == 0


def test_the_backward_pass_saves_no_tensor():
    saved = []
    x = torch.zeros(64, 64, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        fwht(x)
        surface.hadamard_transform_40N(x)
        surface.HadamardTransform12NFn.apply(x)
    assert saved == []


def test_a_parameter_gives_a_plain_tensor():
    parameter = torch.nn.Parameter(torch.randn(3, N))
    with torch.no_grad():
        assert type(fwht(parameter)) is torch.Tensor
    assert type(fwht(parameter)) is torch.Tensor
    fwht(parameter).sum().backward()
    assert parameter.grad is not None
    one_wide = torch.nn.Parameter(torch.ones(3, 1))
    with torch.no_grad():
        assert fwht(one_wide).data_ptr() != one_wide.data_ptr()


def test_inputs_stay_as_they_are():
    for shape in ((3, N), (300, 1024), (1, 1 << 19)):
        x = torch.randn(shape)
        before = x.clone()
        fwht(x, 0.5)
        assert differing(x, before) == 0
