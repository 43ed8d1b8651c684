"""The butterfly in the form that torch.compile fuses, for use inside a trace and compiled by us."""

from __future__ import annotations

import types

import torch
from torch import Tensor

from hadamard_finder.transform.arguments import Scale
from hadamard_finder.transform.butterfly import across_blocks
from hadamard_finder.transform.chunked import as_factor, chunked_butterfly

# A pass over memory does up to this many stages on 2^5 values that fit into registers.
_MOST_STAGES = 5
# Elements compiled code takes at a time: bounds its temporaries, which are as large.
_CHUNK = 1 << 19

_compiled: dict[tuple[object, ...], object] = {}
_unavailable = False


def fused(x: Tensor, scale: Scale, order: int, transposed: bool) -> Tensor:
    """What butterfly() returns, in few passes over memory once torch.compile has fused it."""
    blocks = x.shape[-1] // order
    wide = x if x.dtype == torch.float64 else x.to(torch.float32)
    stride = 1
    for stages in _passes(blocks.bit_length() - 1):
        values = list(wide.reshape(-1, 1 << stages, stride).unbind(1))
        for distance in (1 << stage for stage in range(stages)):
            for low in range(1 << stages):
                if not low & distance:
                    a, b = values[low], values[low + distance]
                    values[low], values[low + distance] = a + b, a - b
        wide = torch.stack(values, 1)
        stride <<= stages
    if order > 1:
        wide = across_blocks(wide.reshape(-1, order, blocks), order, transposed)
    return (wide.reshape(x.shape) * scale).to(x.dtype)


def _passes(stages: int) -> list[int]:
    """Splits the stages into as few passes as possible, balanced: a long one spills registers."""
    count = -(-stages // _MOST_STAGES)
    return [stages // count + (index < stages % count) for index in range(count)]


def compiled_butterfly(x: Tensor, scale: Scale, order: int, transposed: bool) -> Tensor:
    """What butterfly() returns, through torch.compile; eagerly where nothing can compile."""
    global _unavailable
    if _unavailable or x.numel() == 0:
        return chunked_butterfly(x, scale, order, transposed)
    try:
        # One state of the grad mode, so that torch.compile's guards see no change.
        with torch.no_grad():
            return _run(x, scale, order, transposed)
    except Exception as error:
        # Whatever it was (no compiler, no Triton, an unsupported Python), the eager form has no
        # part in it; if it was the input, the eager form raises too and the user sees that.
        result = chunked_butterfly(x, scale, order, transposed)
        _unavailable = True
        import logging

        logging.getLogger("hadamard_finder").warning(
            "torch.compile failed (%s: %s); algorithm 'compiled' runs as 'butterfly' from here on.",
            type(error).__name__,
            str(error).strip().partition("\n")[0],
        )
        return result


def _run(x: Tensor, scale: Scale, order: int, transposed: bool) -> Tensor:
    width = x.shape[-1]
    key = width, order, transposed, x.dtype, x.device.type
    function = _compiled.get(key)
    if function is None:
        function = _compiled[key] = _compile(width, order, transposed)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    factor = as_factor(
        scale, x.device, torch.float64 if x.dtype == torch.float64 else torch.float32
    )
    source = x if x.is_contiguous() else out.copy_(x)
    rows = max(_CHUNK // width, 1)
    given, result = source.view(-1, width), out.view(-1, width)
    for start in range(0, given.shape[0], rows):
        part = slice(start, start + rows)
        function(given[part], factor, result[part])  # type: ignore[operator]
    return out


def _compile(width: int, order: int, transposed: bool) -> object:
    def run(x: Tensor, factor: Tensor, out: Tensor) -> None:
        out.copy_(fused(x.view(-1, width), factor, order, transposed))

    # Dynamo keeps what it compiled on the code object and gives up after eight entries, so each
    # width gets a code object of its own.
    code = run.__code__.replace(co_name=f"run_{width}_{order}_{transposed}")
    return torch.compile(types.FunctionType(code, run.__globals__, None, None, run.__closure__))
