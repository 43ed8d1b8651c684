"""Checks a ``hadamard_transform``, whoever provides it, against a reference made from signs.

Inputs are sparse rows of -1, 0 and 1 and the scales are powers of two: every partial sum is then
exact in every dtype, whatever the order of summation, so the results must be equal, not close.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import torch
from torch import Tensor

from hadamard_finder.report.facts import Check

WIDTHS = (2, 128, 4096)
DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
_Function = Callable[..., Any]
_Property = Callable[[_Function, int, str, torch.dtype], str]
_NONZERO = 32  # in a row; keeps every sum below 2^8, bfloat16's exact integers


def run(function: _Function, kind: str, devices: Iterable[str]) -> Iterator[Check]:
    """Check ``function`` on each device in each dtype; ``kind`` is the source that provides it.

    The real package computes on GPUs only and knows no float64: there a refusal is no failure.
    """
    for device in devices:
        for dtype in DTYPES:
            may_refuse = kind == "real" and device == "cpu"
            may_refuse |= kind != "stand-in" and dtype == torch.float64
            for name, holds in _PROPERTIES.items():
                result, detail = _check(holds, function, device, dtype)
                if result == "refused":
                    result = "unsupported" if may_refuse else "failed"
                yield Check(name, device, str(dtype).removeprefix("torch."), result, detail)


def _check(
    holds: _Property, function: _Function, device: str, dtype: torch.dtype
) -> tuple[Literal["passed", "failed", "unsupported", "refused"], str]:
    try:
        torch.zeros(1, device=device, dtype=dtype)
    except Exception as error:  # MPS has no float64
        return "unsupported", _first_line(error)
    try:
        for width in WIDTHS:
            wrong = holds(function, width, device, dtype)
            if wrong:
                return "failed", f"width {width}: {wrong}"
    except Exception as error:
        return "refused", f"raises {_first_line(error)}"
    return "passed", ""


def _values(function: _Function, width: int, device: str, dtype: torch.dtype) -> str:
    x, positions, signs = _rows(width)
    columns = torch.arange(width)
    expected = signs @ _signs(positions[:, None] & columns[None, :]) * 0.5
    return _compare(function(x.to(device, dtype), 0.5), expected, device, dtype)


def _involution(function: _Function, width: int, device: str, dtype: torch.dtype) -> str:
    x, _, _ = _rows(width)
    return _compare(function(function(x.to(device, dtype))), x * width, device, dtype)


def _rows(width: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(width)
    count = min(width, _NONZERO)
    positions = torch.randperm(width, generator=generator)[:count]
    signs = torch.randint(0, 2, (6, count), generator=generator, dtype=torch.float64) * 2 - 1
    x = torch.zeros(6, width, dtype=torch.float64)
    x[:, positions] = signs
    return x, positions, signs


def _signs(both: Tensor) -> Tensor:
    """Return (-1) to the number of bits set: the entry of Sylvester's matrix for row & column."""
    odd = torch.zeros_like(both)
    while both.any():
        odd ^= both & 1
        both = both >> 1
    return 1.0 - 2.0 * odd.double()


def _compare(result: object, expected: Tensor, device: str, dtype: torch.dtype) -> str:
    """Return what is wrong with ``result``, "" for nothing."""
    if not isinstance(result, Tensor):
        return f"gives {type(result).__name__}, not a tensor"
    if result.dtype != dtype or result.shape != expected.shape or result.device.type not in device:
        return (
            f"gives {result.dtype} {tuple(result.shape)} on {result.device}, "
            f"expected {dtype} {tuple(expected.shape)} on {device}"
        )
    values = result.detach().cpu().double()
    wrong = int((values != expected).sum())
    if not wrong:
        return ""
    row, column = (int(index) for index in (values != expected).nonzero()[0])
    return (
        f"{wrong} of {expected.numel()} values are wrong, the first at "
        f"[{row}, {column}]: {values[row, column]:g}, expected {expected[row, column]:g}"
    )


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


_PROPERTIES: dict[Literal["values", "involution"], _Property] = {
    "values": _values,
    "involution": _involution,
}
