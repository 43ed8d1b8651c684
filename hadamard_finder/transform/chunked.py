"""The butterfly as eager PyTorch runs it fast, with the same bits as butterfly.py.

Measured on CPUs:
- Stages with a short stride spend their time in loops too short for SIMD. channel_shuffle on
  channels-last float32 is a SIMD transpose as fast as a copy, so the low stages run on transposed
  blocks, where every run is long.
- A stage that stays in the second-level cache costs a third of one that does not. So the data goes
  through in chunks, and the views of the two scratch buffers are built once for all chunks.
- addcmul with a sign does in one pass what add and sub do in two, and finds each run in the
  first-level cache the second time. a + 1 * b and a + -1 * b are a + b and a - b to the last bit,
  signed zeros, infinities and NaNs included.
A GPU gets the same chunks and stages without the transposes, one kernel a stage.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from hadamard_finder.transform.arguments import Scale
from hadamard_finder.transform.butterfly import butterfly, signs_of

# Below this many elements building views costs more than long runs save.
_SMALL = 1 << 14
# Elements of a chunk: per thread, and at most. Up to four buffers of that size exist at a time.
_PER_THREAD, _MOST = 1 << 17, 1 << 21
# The same on other devices, where each stage of a chunk costs a launch. Not measured.
_ON_DEVICE = 1 << 22
# A transposed block: rows of _LOW elements, _ACROSS of them side by side.
_LOW, _ACROSS = 128, 256
# Rows of the N variants up to this width run whole in transposed blocks.
_LOW_MIXED = 4096

GREATEST = float.fromhex("0x1.fffffep127")  # float32

_pair_signs: dict[torch.dtype, Tensor] = {}

# One addcmul: out = first + sign * second.
Call = tuple[Tensor, Tensor, Tensor, Tensor]
# Builds the calls of one stage from a flat buffer to another.
Stage = Callable[[Tensor, Tensor], list[Call]]


def chunked_butterfly(x: Tensor, scale: Scale, order: int, transposed: bool) -> Tensor:
    """What butterfly() returns, for a plain strided tensor."""
    width = x.shape[-1]
    if width == 1 or x.numel() == 0:
        return butterfly(x, scale, order, transposed)
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    factor = as_factor(scale, x.device, dtype)
    if x.numel() < _SMALL and order == 1:
        return _few(x, factor)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    # Any other layout is copied to where the result will be: a chunk is read before it is written.
    source = x if x.is_contiguous() else out.copy_(x)
    stages = _Stages(order, transposed, dtype, x.device)
    chunk = chunk_size(x.device)
    if width > chunk:
        for row, result in zip(source.view(-1, width), out.view(-1, width), strict=True):
            _long_row(row, result, factor, stages, chunk // 4)
    else:
        _rows(source.view(-1, width), out.view(-1, width), factor, stages, chunk)
    return out


def as_factor(scale: Scale, device: torch.device, dtype: torch.dtype) -> Tensor:
    """The scale as a 0-dimensional tensor that multiplies tensors on device."""
    if not isinstance(scale, torch.Tensor):
        if dtype == torch.float32 and abs(scale) > GREATEST:
            # The cast of the kernel, to infinity or the greatest; full() would raise.
            scale = torch.full((), scale, dtype=torch.float64, device="cpu").to(dtype).item()
        # Not torch.tensor: its copy to a GPU waits for the GPU. A kernel fills this one.
        return torch.full((), scale, dtype=dtype, device=device)
    # A number on the host multiplies a tensor on any device; the reverse PyTorch refuses.
    return scale.to(dtype=dtype, device=device if device.type == "cpu" else None)


def pair_signs(dtype: torch.dtype, device: torch.device) -> Tensor:
    """A column of +1 and -1. Kept on a CPU only: a CUDA graph would own what its capture made."""
    signs = _pair_signs.get(dtype) if device.type == "cpu" else None
    if signs is None:
        # Born under inference_mode it could not take part in training.
        with torch.inference_mode(False), torch.no_grad():
            signs = torch.ones((2, 1), dtype=dtype, device=device)
            signs[1].neg_()
        if device.type == "cpu":
            _pair_signs[dtype] = signs
    return signs


def chunk_size(device: torch.device) -> int:
    """How many elements to take through all stages at a time; a power of two."""
    if device.type != "cpu":
        return _ON_DEVICE
    return 1 << min(_PER_THREAD * torch.get_num_threads(), _MOST).bit_length() - 1


def _few(x: Tensor, factor: Tensor) -> Tensor:
    """Constant geometry: every stage reads neighbours and writes halves, through the same views."""
    width = x.shape[-1]
    half = width // 2
    size, pairs = (x.numel() // width, 2, half), (width, 0, 2)
    signs = pair_signs(factor.dtype, x.device)
    source = x if x.is_contiguous() else x.contiguous()
    if source.dtype != factor.dtype:
        source = source.to(factor.dtype)
    start = source.storage_offset()
    low = source.as_strided(size, pairs, start)
    high = source.as_strided(size, pairs, start + 1)
    results, reads, writes = [], [], []
    stages = width.bit_length() - 1
    for _ in range(min(stages, 2)):
        result = torch.empty(x.shape, dtype=factor.dtype, device=x.device)
        results.append(result)
        reads.append((result.as_strided(size, pairs), result.as_strided(size, pairs, 1)))
        writes.append(result.as_strided(size, (width, half, 1)))
    for stage in range(stages):
        torch.addcmul(low, signs, high, out=writes[stage & 1])
        low, high = reads[stage & 1]
    result = results[(stages - 1) & 1].mul_(factor)
    return result if x.dtype == factor.dtype else result.to(x.dtype)


def _rows(source: Tensor, out: Tensor, factor: Tensor, stages: _Stages, chunk: int) -> None:
    """Rows that fit into a chunk, as many at a time as do."""
    rows, width = source.shape
    at_once = min(rows, chunk // width)
    if at_once > _ACROSS:
        at_once -= at_once % _ACROSS
    scratch = two_buffers(at_once * width, stages.signs)
    whole = rows - rows % at_once
    for begin, end, group in (0, whole, at_once), (whole, rows, rows - whole):
        if begin == end:
            continue
        piece = _Piece(stages, width, [t[: group * width] for t in scratch])
        for start in range(begin, end, group):
            part = slice(start, start + group)
            finish(piece(source[part]).view(group, width), factor, out[part])


def _long_row(row: Tensor, out: Tensor, factor: Tensor, stages: _Stages, chunk: int) -> None:
    """One row longer than a chunk: pieces of it first, then slabs that cut across the pieces."""
    blocks = row.numel() // stages.order
    size = min(chunk, blocks)
    # Sums that out cannot hold unrounded wait in a row of their own.
    waiting = out if out.dtype == factor.dtype else torch.empty_like(out, dtype=factor.dtype)
    waiting, row, out = waiting.view(-1, size), row.view(-1, size), out.view(-1, size)
    piece = _Piece(
        _Stages(1, False, factor.dtype, row.device), size, two_buffers(size, stages.signs)
    )
    for given, sums in zip(row, waiting, strict=True):
        sums.copy_(piece(given))
    del piece  # with its buffers
    pieces = row.shape[0]
    slab = 1 << max(size // pieces, 1).bit_length() - 1
    scratch = two_buffers(pieces * slab, stages.signs)
    across = blocks // size
    chain = _Chain(stages.pairs(1, across, slab) + stages.mix(across * slab), scratch)
    for start in range(0, size, slab):
        part = slice(start, start + slab)
        given = scratch[1].view(pieces, slab).copy_(waiting[:, part])
        finish(chain(given.view(-1)).view(pieces, slab), factor, out[:, part])


def two_buffers(size: int, like: Tensor) -> list[Tensor]:
    return [torch.empty(size, dtype=like.dtype, device=like.device) for _ in range(2)]


def finish(sums: Tensor, factor: Tensor, out: Tensor) -> None:
    """Scales sums, which may be overwritten, and rounds them into out."""
    if out.dtype == sums.dtype:
        torch.mul(sums, factor, out=out)
    else:
        # In two steps: mul into another dtype makes a temporary and takes longer.
        out.copy_(sums.mul_(factor))


class _Stages:
    """Makes the stages of one transform, for buffers where neighbours lie run elements apart."""

    def __init__(
        self, order: int, transposed: bool, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.order = order
        self.signs = pair_signs(dtype, device)
        self._columns: tuple[Tensor, ...] = ()
        if order > 1:
            matrix = signs_of(order, dtype, device)
            self._columns = (matrix if transposed else matrix.t()).unsqueeze(-1).unbind(0)
            # -0.0 + v is v for every v; +0.0 would lose the sign of a negative zero.
            self._nothing = torch.full((), -0.0, dtype=dtype, device=device)

    def pairs(self, first: int, end: int, run: int) -> list[Stage]:
        """The butterflies of distance first, 2 * first, ... below end."""
        count = (end // first).bit_length() - 1
        return [partial(self._pair, (first << stage) * run) for stage in range(count)]

    def mix(self, stride: int) -> list[Stage]:
        """The fixed matrix across blocks of stride elements; nothing for a power of two."""
        return [partial(self._mix, stride)] if self._columns else []

    def _pair(self, stride: int, source: Tensor, to: Tensor) -> list[Call]:
        size = source.numel() // (2 * stride), 2, stride
        each, start = (2 * stride, 0, 1), source.storage_offset()
        low = source.as_strided(size, each, start)
        high = source.as_strided(size, each, start + stride)
        return [(low, self.signs, high, to.view(size))]

    def _mix(self, stride: int, source: Tensor, to: Tensor) -> list[Call]:
        given, sums = source.view(-1, self.order, stride), to.view(-1, self.order, stride)
        firsts = (self._nothing,) + (sums,) * (self.order - 1)
        blocks = [given[:, block : block + 1] for block in range(self.order)]
        return [
            (first, column, block, sums)
            for first, column, block in zip(firsts, self._columns, blocks, strict=True)
        ]


class _Chain:
    """Stages in a row. The first reads what it is given, the others two scratch buffers in turn."""

    def __init__(self, stages: list[Stage], scratch: list[Tensor]) -> None:
        self._first = stages[0] if stages else None
        self._scratch = scratch
        self._rest: list[Call] = []
        at = 0
        for stage in stages[1:]:
            self._rest += stage(scratch[at], scratch[1 - at])
            at = 1 - at
        self.result = scratch[at]

    def __call__(self, source: Tensor) -> Tensor:
        if self._first is None:
            return source
        for first, signs, second, out in self._first(source, self._scratch[0]) + self._rest:
            torch.addcmul(first, signs, second, out=out)
        return self.result


class _Piece:
    """All stages of some whole rows, unscaled; on a CPU the low ones on transposed blocks."""

    def __init__(self, stages: _Stages, width: int, scratch: list[Tensor]) -> None:
        self._scratch = scratch
        blocks = width // stages.order
        all_low = width <= (_LOW if stages.order == 1 else _LOW_MIXED)
        self._low = width if all_low else min(blocks, _LOW)
        self._across = _across(scratch[0], self._low)
        if self._across == 1:
            self._lows = _Chain(stages.pairs(1, blocks, 1) + stages.mix(blocks), scratch)
            return
        low, high = stages.pairs(1, min(blocks, self._low), self._across), []
        if all_low:
            low += stages.mix(blocks * self._across)
        else:
            high = stages.pairs(self._low, blocks, 1) + stages.mix(blocks)
        self._lows, self._highs = _Chain(low, scratch), _Chain(high, scratch)

    def __call__(self, source: Tensor) -> Tensor:
        source = source.view(-1)
        if source.dtype != self._scratch[0].dtype:
            # First to float32: only that is SIMD in channel_shuffle.
            source = self._scratch[1].copy_(source)
        if self._across == 1:
            return self._lows(source)
        flipped = _transpose(source, self._across, self._low)
        sums = self._lows(flipped)
        del flipped  # before the next one is made
        return self._highs(_transpose(sums, self._low, self._across))


def _across(buffer: Tensor, low: int) -> int:
    """How many rows of low elements to transpose together; 1 for none."""
    if buffer.device.type != "cpu":
        return 1
    rows = buffer.numel() // low
    across = math.gcd(rows, _ACROSS)
    if across >= 32:
        return across
    # Two blocks where that is possible, one for each of two threads.
    return rows // 2 if rows % 2 == 0 else rows


def _transpose(flat: Tensor, rows: int, columns: int) -> Tensor:
    """Transposes each block of rows * columns elements, into a new flat tensor."""
    channels = flat.view(-1, 1, 1, rows * columns).permute(0, 3, 1, 2)
    return torch.channel_shuffle(channels, rows).permute(0, 2, 3, 1).view(-1)
