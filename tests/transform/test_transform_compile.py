"""Inside torch.compile and torch.export, without data, and compiled by us."""

import contextlib
import logging

import pytest
import torch
import torch._dynamo.utils
from torch._subclasses import FakeTensorMode
from torch.func import grad, vmap
from transform.golden_cases import CASES, differing, function_name, reference

from hadamard_finder.transform import compiled, fwht, surface

# Each case takes seconds to compile, so few: both numbers of passes, a padded width, a symmetric
# and an unsymmetric fixed matrix, every dtype. test_transform_bits.py runs all in the same form.
INSIDE = [CASES[number] for number in (9, 24, 47, 94, 100)]
BY_US = [CASES[number] for number in (9, 53, 100)]


@pytest.fixture(autouse=True)
def _fresh_dynamo(monkeypatch):
    torch._dynamo.reset()
    monkeypatch.setattr(compiled, "_compiled", {})
    monkeypatch.setattr(compiled, "_SMALL", 0)


def call(case, x, scale=None):
    return getattr(surface, function_name(case.order))(x, case.scale if scale is None else scale)


@pytest.mark.parametrize("order", [1, 12, 20, 28, 40])
def test_every_kind_traces_without_a_break(order):
    widths = {1: (1, 2, 100, 2048), 12: (96,), 20: (300,), 28: (112,), 40: (320,)}[order]
    cases = [case for case in CASES if case.order == order and case.x.shape[-1] in widths]
    assert len(cases) == 3 * len(widths)
    run = torch.compile(lambda xs: [call(c, x) for c, x in zip(cases, xs, strict=True)],
                        fullgraph=True, backend="eager")  # fmt: skip
    for case, y in zip(cases, run([case.x for case in cases]), strict=True):
        assert differing(y, case.y) == 0, case.name


@pytest.mark.parametrize("case", INSIDE, ids=lambda case: case.name)
def test_golden_and_backward_inside_torch_compile(case):
    run = torch.compile(lambda x: call(case, x), fullgraph=True)
    assert differing(run(case.x), case.y) == 0
    slopes = []
    for function in (run, lambda x: call(case, x)):
        x = case.x.clone().requires_grad_()
        y = function(x)
        assert differing(y.detach(), case.y) == 0
        y.backward(case.x.flip(0))
        slopes.append(x.grad)
    assert differing(*slopes) == 0


@pytest.mark.parametrize("case", BY_US, ids=lambda case: case.name)
def test_golden_by_the_compiled_algorithm(monkeypatch, case):
    monkeypatch.setenv("HADAMARD_FINDER_ALGORITHM", "compiled")
    assert differing(call(case, case.x), case.y) == 0
    x = torch.zeros_like(case.x, requires_grad=True)
    call(case, x).backward(case.x)
    assert differing(x.grad, reference(case.x, case.scale, case.order, transposed=True)) == 0
    assert not compiled._unavailable


def test_the_compiled_algorithm_in_chunks_with_a_tail(monkeypatch):
    monkeypatch.setattr(compiled, "_SPARE", 1 << 14)
    x = torch.randn(2 * 512 + 3, 8, generator=torch.Generator().manual_seed(0))
    assert differing(fwht(x, 0.3, algorithm="compiled"), fwht(x, 0.3)) == 0
    assert differing(fwht(x.T.contiguous().T, 0.3, algorithm="compiled"), fwht(x, 0.3)) == 0
    assert [key[-1] for key in compiled._compiled] == [False]
    assert not compiled._unavailable


def test_a_tensor_that_requires_grad_compiles_nothing_anew():
    x = torch.randn(4, 8)
    fwht(x, algorithm="compiled")
    compiled_so_far = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    assert compiled_so_far > 0
    fwht(x.clone().requires_grad_(), algorithm="compiled").sum().backward()
    fwht(torch.nn.Parameter(x), algorithm="compiled")
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == compiled_so_far


def test_more_widths_than_dynamo_keeps_of_one_function(monkeypatch):
    # Dynamo's own limit is eight; past it a function runs uncompiled.
    entered = []
    monkeypatch.setattr(compiled.torch, "compile", lambda f, **_: entered.append(f.__code__) or f)
    for stages in range(1, 12):
        x = torch.randn(2, 1 << stages)
        assert differing(fwht(x, algorithm="compiled"), fwht(x)) == 0
    assert len({id(code) for code in entered}) == 11


def test_where_nothing_compiles_the_butterfly_runs_and_one_warning_says_so(monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("no compiler found\nand more lines")

    monkeypatch.setattr(compiled, "_unavailable", False)
    monkeypatch.setattr(compiled, "_compile", broken)
    x = torch.randn(3, 64)
    with caplog.at_level(logging.WARNING, "hadamard_finder"):
        for _ in range(2):
            assert differing(fwht(x, algorithm="compiled"), fwht(x)) == 0
    (record,) = [r for r in caplog.records if r.name == "hadamard_finder"]
    assert "no compiler found" in record.getMessage()
    assert "\n" not in record.getMessage()
    assert compiled._unavailable


def test_a_dynamic_batch_compiles_once():
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    run = torch.compile(lambda x: fwht(x, 0.3), fullgraph=True, dynamic=True, backend=counter)
    for rows in (2, 3, 17):
        x = torch.randn(rows, 64)
        assert differing(run(x), fwht(x, 0.3)) == 0
    assert counter.frame_count == 1


def test_what_callers_write_traces():
    def caller(x, scale):
        a = surface.hadamard_transform(x)
        b = surface.hadamard_transform(x=a, scale=scale)
        c = surface.hadamard_transform(b, scale=1.0 / torch.tensor(x.shape[-1]).sqrt())
        d = surface.HadamardTransformFn.apply(c, 0.3)
        return fwht(d, algorithm="butterfly"), surface.HadamardTransform20NFn.apply(x)

    x = torch.randn(3, 64)
    compiled_caller = torch.compile(caller, fullgraph=True, backend="aot_eager")
    for scale in (0.1, torch.tensor(0.3)):
        for y, expected in zip(compiled_caller(x, scale), caller(x, scale), strict=True):
            assert differing(y, expected) == 0


def test_the_function_classes_train_inside_torch_compile():
    slopes = []
    for wrap in (lambda f: f, lambda f: torch.compile(f, fullgraph=True, backend="aot_eager")):
        x = torch.randn(3, 77, generator=torch.Generator().manual_seed(0)).requires_grad_()
        wrap(lambda x: surface.HadamardTransform20NFn.apply(x, 0.3))(x).backward(x.detach())
        slopes.append(x.grad)
    assert differing(*slopes) == 0


def test_the_setting_of_the_algorithm_leaves_traces_exact(monkeypatch):
    monkeypatch.setenv("HADAMARD_FINDER_ALGORITHM", "matmul")
    x = torch.randn(3, 512)
    run = torch.compile(lambda x: fwht(x, 0.3), fullgraph=True, backend="aot_eager")
    assert differing(run(x), fwht(x, 0.3, algorithm="butterfly")) == 0


def test_torch_func_inside_torch_compile():
    x = torch.randn(3, 64)
    run = torch.compile(lambda x: vmap(fwht)(x), fullgraph=True, backend="aot_eager")
    assert differing(run(x), fwht(x)) == 0
    # Dynamo differentiates through the stages here, so these bits are not those of eager mode.
    slope = grad(lambda x: (fwht(x) ** 3).sum())
    run = torch.compile(slope, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(run(x), slope(x), rtol=1e-4, atol=1e-2)


class Rotate(torch.nn.Module):
    def forward(self, x):
        return surface.hadamard_transform(x, 0.3), surface.hadamard_transform_12N(x)


@pytest.mark.parametrize("strict", [True, False])
def test_export(strict):
    x = torch.randn(3, 50)
    program = torch.export.export(
        Rotate(), (x,), strict=strict, dynamic_shapes=({0: torch.export.Dim("batch", min=2)},)
    )
    longer = torch.randn(7, 50, requires_grad=True)
    for y, expected in zip(program.module()(longer), Rotate()(longer), strict=True):
        assert differing(y.detach(), expected.detach()) == 0
        assert y.requires_grad


@pytest.mark.parametrize("algorithm", ["butterfly", "matmul", "compiled"])
def test_tensors_without_data(monkeypatch, algorithm):
    monkeypatch.setenv("HADAMARD_FINDER_ALGORITHM", algorithm)
    given = torch.zeros(3, 50, dtype=torch.bfloat16, device="meta", requires_grad=True)
    for mode in (contextlib.nullcontext(), FakeTensorMode()):
        with mode as fake:
            if fake is not None:
                given = torch.zeros(3, 50, dtype=torch.bfloat16, requires_grad=True)
            for function in (surface.hadamard_transform, surface.hadamard_transform_40N):
                y = function(given)
                assert (y.shape, y.dtype, y.device) == (given.shape, given.dtype, given.device)
                assert type(y) is type(given)
                y.sum().backward()
            assert given.grad.shape == given.shape
