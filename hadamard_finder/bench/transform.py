"""Times the transform beside a plain copy and the alternatives.

All methods of a row run in turn in one process, so that a machine whose speed drifts slows them
alike; figures are ratios to ``x.clone()``, the least that any out-of-place operator can do.
"""

import ctypes
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Its profiler, which tells the peak memory, writes two lines to stderr at each use otherwise.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")

import torch

from hadamard_finder import fwht

WIDTHS = (64, 128, 512, 1024, 4096, 16384)
DTYPES = ("float32", "bfloat16", "float16")
# The dense matrix of 16384 alone takes a gigabyte.
WIDEST_LINEAR = 4096
ROUNDS = 7

Method = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Row:
    """One width and dtype; per method: ratio to clone, and peak memory in outputs."""

    dtype: str
    width: int
    elements: int
    clone_ms: float
    forward: dict[str, float]
    forward_backward: dict[str, float]
    peak_memory: dict[str, float]


def measure(device: torch.device, dtype_name: str, width: int) -> Row:
    dtype: torch.dtype = getattr(torch, dtype_name)
    elements = 2**22 if device.type == "cpu" else 2**26
    elements = max(elements, width)
    generator = torch.Generator(device).manual_seed(0)
    x = torch.randn(elements // width, width, device=device, generator=generator).to(dtype)
    methods = _methods(width, dtype, device)
    gradient = torch.randn_like(x)
    both = {name: _with_backward(own, gradient) for name, own in methods.items() if name != "clone"}
    leaf = x.detach().clone().requires_grad_()
    forward_times = _interleaved(methods, x)
    both_times = _interleaved({"clone": torch.clone, **both}, leaf)
    return Row(
        dtype=dtype_name,
        width=width,
        elements=elements,
        clone_ms=statistics.median(forward_times["clone"]) * 1e3,
        forward=_ratios(forward_times),
        forward_backward=_ratios(both_times),
        peak_memory={
            name: _peak_bytes(method, x) / (x.numel() * x.element_size())
            for name, method in methods.items()
        },
    )


def measure_small_call(device: torch.device) -> tuple[float, float]:
    """One call on 1 x 128 float32, where no time goes into arithmetic: ours to the stack-based one.

    Returns the ratio forward, and the ratio forward and backward.
    """
    x = torch.randn(1, 128, device=device)
    every = _methods(128, torch.float32, device)
    methods = {"stacked": every["stacked"], "butterfly": every["butterfly"]}
    both = {name: _with_backward(method, x) for name, method in methods.items()}
    ratios = (
        _ratios(
            _interleaved({name: _often(method) for name, method in group.items()}, given),
            to="stacked",
        )
        for group, given in ((methods, x), (both, x.clone().requires_grad_()))
    )
    forward, forward_backward = (ratio["butterfly"] for ratio in ratios)
    return forward, forward_backward


def _often(method: Method) -> Method:
    def run(x: torch.Tensor) -> torch.Tensor:
        for _ in range(300):
            result = method(x)
        return result

    return run


def _with_backward(method: Method, gradient: torch.Tensor) -> Method:
    def run(leaf: torch.Tensor) -> torch.Tensor:
        (result,) = torch.autograd.grad(method(leaf), leaf, gradient)
        return result

    return run


def stacked(x: torch.Tensor, scale: float) -> torch.Tensor:
    """The textbook butterfly, a + b and a - b stacked at every stage: what most shims do."""
    width = x.shape[-1]
    y = x.reshape(-1, width).float()
    run = 1
    while run < width:
        low, high = y.view(-1, width // (2 * run), 2, run).unbind(2)
        y = torch.stack((low + high, low - high), 2)
        run *= 2
    return (y.reshape(x.shape) * scale).to(x.dtype)


def dense_matrix(width: int) -> torch.Tensor:
    """Sylvester's Hadamard matrix, float32, [width, width]."""
    matrix = torch.ones(1, 1)
    while len(matrix) < width:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return matrix


def _methods(width: int, dtype: torch.dtype, device: torch.device) -> dict[str, Method]:
    scale = width**-0.5
    methods: dict[str, Method] = {
        "clone": torch.clone,
        "stacked": lambda x: stacked(x, scale),
    }
    if width <= WIDEST_LINEAR:
        matrix = (dense_matrix(width) * scale).to(device, dtype)
        methods["linear"] = lambda x: torch.nn.functional.linear(x, matrix)
    methods["butterfly"] = lambda x: fwht(x, scale, algorithm="butterfly")
    methods["compiled"] = lambda x: fwht(x, scale, algorithm="compiled")
    methods["matmul"] = lambda x: fwht(x, scale, algorithm="matmul")
    real = _real_package() if device.type == "cuda" else None
    if real is not None:
        methods["real"] = lambda x: real(x, scale)
    return methods


def _real_package() -> Callable[[torch.Tensor, float], torch.Tensor] | None:
    import fast_hadamard_transform

    if getattr(fast_hadamard_transform, "__hadamard_finder__", False):
        return None
    function: Callable[[torch.Tensor, float], torch.Tensor]
    function = fast_hadamard_transform.hadamard_transform
    return function


def _interleaved(methods: dict[str, Method], x: torch.Tensor) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in methods}
    for method in methods.values():
        method(x)
        method(x)
    for _ in range(ROUNDS):
        for name, method in methods.items():
            times[name].append(_seconds(method, x))
    return times


def _seconds(method: Method, x: torch.Tensor) -> float:
    _wait(x.device)
    start = time.perf_counter()
    result = method(x)
    _wait(x.device)
    elapsed = time.perf_counter() - start
    del result  # freeing it belongs to the next call
    return elapsed


def _wait(device: torch.device) -> None:
    if device.type != "cpu":
        torch.get_device_module(device).synchronize(device)


def _ratios(times: dict[str, list[float]], to: str = "clone") -> dict[str, float]:
    return {
        name: statistics.median(own / base for own, base in zip(values, times[to], strict=True))
        for name, values in times.items()
        if name != to
    }


def _peak_bytes(method: Method, x: torch.Tensor) -> int:
    """The most memory that a call holds at any moment, its output included."""
    if x.device.type != "cpu":
        memory: Any = torch.get_device_module(x.device)
        memory.reset_peak_memory_stats(x.device)
        before = memory.memory_allocated(x.device)
        method(x)
        return int(memory.max_memory_allocated(x.device)) - int(before)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        method(x)
    events = [
        event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"
    ]
    held = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def keep_pages() -> None:
    """Keep glibc from returning freed pages: faulting them in again makes clone bimodal."""
    m_trim_threshold, m_mmap_max = -1, -4  # malloc.h
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is not None:
        mallopt(m_mmap_max, 0)
        mallopt(m_trim_threshold, 2**31 - 1)
