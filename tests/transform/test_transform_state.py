"""State of the process that must change no bit, and what the transform must leave alone."""

import contextlib

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transform.golden_cases import differing

from hadamard_finder.transform import chunked, fwht, matmul, surface

ALGORITHMS = ["butterfly", "matmul"]
SHAPES = [(5, 64), (300, 1024), (1, 1 << 19)]

every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


@pytest.fixture(autouse=True)
def no_cached_blocks(monkeypatch):
    monkeypatch.setattr(matmul, "_blocks", {})


def given(shape, dtype):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype)


@contextlib.contextmanager
def default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextlib.contextmanager
def default_device():
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)


@contextlib.contextmanager
def deterministic():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


STATES = {
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "default dtype": default_dtype,
    "default device": default_device,
    "meta device": lambda: torch.device("meta"),
    "deterministic": deterministic,
    "inference mode": torch.inference_mode,
    "no grad": torch.no_grad,
}


@every_algorithm
@every_shape
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("state", STATES)
def test_state_changes_no_bit(state, dtype, shape, algorithm):
    x = given(shape, dtype)
    with STATES[state]():
        y = fwht(x, 0.3, algorithm=algorithm)
    assert y.device == x.device
    assert differing(y, fwht(x, 0.3, algorithm=algorithm)) == 0


@pytest.mark.parametrize("state", STATES)
def test_state_changes_no_bit_of_an_n_variant(state):
    x = given((3, 77), torch.bfloat16)
    with STATES[state]():
        y = surface.hadamard_transform_28N(x, 0.3)
    assert differing(y, surface.hadamard_transform_28N(x, 0.3)) == 0


@every_algorithm
@every_shape
@pytest.mark.parametrize("function", [fwht, surface.hadamard_transform])
def test_training_works_after_inference_mode(function, shape, algorithm, monkeypatch):
    monkeypatch.setenv("HADAMARD_FINDER_ALGORITHM", algorithm)
    with torch.inference_mode():
        function(given(shape, torch.float32))
    x = given(shape, torch.float32).requires_grad_()
    function(x).sum().backward()
    assert differing(x.grad, function(torch.ones_like(x))) == 0


def test_matmul_under_autocast_trains_in_float32():
    x = given((300, 64), torch.float32).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        fwht(x, algorithm="matmul").sum().backward()
    assert x.grad.dtype == torch.float32
    assert differing(x.grad, fwht(torch.ones_like(x), algorithm="matmul")) == 0


@pytest.mark.parametrize("precision", ["medium", "high"])
def test_lower_matmul_precision_sends_float32_through_the_butterfly(precision):
    x = given((300, 1024), torch.float32)
    torch.set_float32_matmul_precision(precision)
    try:
        y = fwht(x, algorithm="matmul")
    finally:
        torch.set_float32_matmul_precision("highest")
    assert differing(y, fwht(x, algorithm="butterfly")) == 0
    assert differing(fwht(x, algorithm="matmul"), y) > 0


def test_the_newer_precision_switches_count_too():
    backend = torch.backends.mkldnn.matmul
    if not hasattr(backend, "fp32_precision"):
        pytest.skip("this PyTorch has only the older switch")
    x = given((300, 1024), torch.float32)
    before = backend.fp32_precision
    # Now torch.get_float32_matmul_precision() raises.
    backend.fp32_precision = "bf16"
    try:
        y = fwht(x, algorithm="matmul")
    finally:
        backend.fp32_precision = before
    assert differing(y, fwht(x, algorithm="butterfly")) == 0


class NoHostReads(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert func is not torch.ops.aten._local_scalar_dense.default
        assert func is not torch.ops.aten.item.default
        return func(*args, **(kwargs or {}))


@every_shape
@pytest.mark.parametrize("algorithm", ["butterfly", "matmul"])
def test_a_scale_in_a_tensor_is_never_read(monkeypatch, shape, algorithm):
    # A dispatch mode alone would send the call through the plain form; the fast ones count.
    monkeypatch.setattr(torch._C, "_len_torch_dispatch_stack", lambda: 0)
    x, scale = given(shape, torch.bfloat16), torch.tensor(0.3)
    with NoHostReads():
        y = fwht(x, scale, algorithm=algorithm)
        x.requires_grad_()
        fwht(x, scale, algorithm=algorithm).sum().backward()
    assert differing(y, fwht(x, 0.3, algorithm="butterfly")) <= y.numel() * 1e-3


def test_no_host_reads_in_the_plain_form():
    x = given((3, 64), torch.float32)
    with NoHostReads():
        y = fwht(x, torch.tensor(0.3))
    assert differing(y, fwht(x, 0.3)) == 0


def test_nothing_is_cached_while_a_cuda_graph_is_captured(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    monkeypatch.setattr(matmul, "_build", lambda *_: torch.ones(1))
    matmul._block(1, 8, False, torch.float32, torch.device("cuda"))
    assert matmul._blocks == {}
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    matmul._block(1, 8, False, torch.float32, torch.device("cuda"))
    assert len(matmul._blocks) == 1


def test_cached_tensors_are_no_inference_tensors(monkeypatch):
    monkeypatch.setattr(chunked, "_pair_signs", {})
    with torch.inference_mode():
        fwht(torch.zeros(300, 64), algorithm="matmul")
        fwht(torch.zeros(300, 64))
    cached = [*matmul._blocks.values(), *chunked._pair_signs.values()]
    assert len(cached) >= 2
    assert not any(tensor.is_inference() for tensor in cached)


def test_signs_for_other_devices_are_not_cached(monkeypatch):
    monkeypatch.setattr(chunked, "_pair_signs", {})
    chunked.pair_signs(torch.float32, torch.device("meta"))
    assert chunked._pair_signs == {}
