"""The butterfly in the form that torch.compile fuses, for use inside a trace and compiled by us."""

from __future__ import annotations

import types
from collections.abc import Callable

import torch
from torch import Tensor

from hadamard_finder.transform.arguments import Scale
from hadamard_finder.transform.butterfly import across_blocks
from hadamard_finder.transform.chunked import as_factor, chunked_butterfly

# A pass over memory does up to this many stages on 2^5 values that fit into registers.
_MOST_STAGES = 5
# Bytes of temporaries that compiled code may make at a time on a CPU: what the input is cut by. An
# entry costs 50 to 200 microseconds, which smaller chunks would feel.
_SPARE = 9 << 19
# Below this many elements entering compiled code costs more on a CPU than it saves.
_SMALL = 1 << 14

_compiled: dict[tuple[object, ...], Callable[[Tensor, Tensor, Tensor], None]] = {}
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
        stride <<= stages
        if stride == x.shape[-1]:
            # Before the stack, which is written to memory: after it, this would be one more pass.
            values = [(value * scale).to(x.dtype) for value in values]
        wide = torch.stack(values, 1)
    if stride == x.shape[-1] and stride > 1:
        return wide.reshape(x.shape)
    if order > 1:
        wide = across_blocks(wide.reshape(-1, order, blocks), order, transposed)
    return (wide.reshape(x.shape) * scale).to(x.dtype)


def _passes(stages: int) -> list[int]:
    """Splits the stages into as few passes as possible, balanced: a long one spills registers.

    The first gets the fewest: its values lie side by side, which Inductor does not vectorize.
    """
    count = -(-stages // _MOST_STAGES)
    return [stages // count + (index >= count - stages % count) for index in range(count)]


def compiled_butterfly(x: Tensor, scale: Scale, order: int, transposed: bool) -> Tensor:
    """What butterfly() returns, through torch.compile; eagerly where nothing can compile."""
    global _unavailable
    if _unavailable or x.numel() == 0:
        return chunked_butterfly(x, scale, order, transposed)
    try:
        # One state of the grad mode and of the input, so that torch.compile's guards see no change.
        with torch.no_grad():
            # A matrix of a power of two is symmetric: its backward is the same code.
            return _run(x.detach(), scale, order, transposed and order > 1)
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
    width, size = x.shape[-1], x.numel()
    rows = size // width
    at_once = rows
    if x.device.type == "cpu":
        at_once = min(_chunk(x, order) // width, rows)
        if size < _SMALL or at_once == 0:
            return chunked_butterfly(x, scale, order, transposed)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    factor = as_factor(scale, x.device, dtype)
    # Any other layout is copied to where the result will be, and a chunk of it once more: a graph
    # that writes to its input is compiled to something slower.
    copied = not x.is_contiguous()
    given, result = (out.copy_(x) if copied else x).view(-1, width), out.view(-1, width)
    # One shape for all whole chunks: code for any number of rows is half as fast in 16 bits. Inputs
    # below a chunk come in too many sizes for that.
    function = _function(width, order, transposed, x, dynamic=None if at_once == rows else False)
    whole = rows - rows % at_once
    for start in range(0, whole, at_once):
        part = slice(start, start + at_once)
        function(given[part].clone() if copied else given[part], factor, result[part])
    if whole < rows:
        result[whole:] = chunked_butterfly(given[whole:], scale, order, transposed)
    return out


def _chunk(x: Tensor, order: int) -> int:
    """How many elements to take through compiled code at a time."""
    stacks = len(_passes((x.shape[-1] // order).bit_length() - 1))
    # Of stacked sums two exist at a time. The last stack of a power of two is rounded already.
    sums = min(max(stacks - (order == 1), 0), 2) * max(x.element_size(), 4)
    return _SPARE // (sums + x.element_size())


def _function(
    width: int, order: int, transposed: bool, like: Tensor, dynamic: bool | None
) -> Callable[[Tensor, Tensor, Tensor], None]:
    key = width, order, transposed, like.dtype, like.device.type, dynamic
    function = _compiled.get(key)
    if function is None:
        function = _compiled[key] = _compile(width, order, transposed, dynamic)
    return function


def _compile(
    width: int, order: int, transposed: bool, dynamic: bool | None
) -> Callable[[Tensor, Tensor, Tensor], None]:
    def run(x: Tensor, factor: Tensor, out: Tensor) -> None:
        out.copy_(fused(x.view(-1, width), factor, order, transposed))

    # Dynamo keeps what it compiled on the code object and gives up after eight entries, so each
    # function gets a code object of its own.
    code = run.__code__.replace(co_name=f"run_{width}_{order}_{transposed}")
    own = types.FunctionType(code, run.__globals__, None, None, run.__closure__)
    return torch.compile(own, dynamic=dynamic)
