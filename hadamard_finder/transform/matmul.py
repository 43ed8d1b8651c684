"""The transform as a few matrix products with blocks of +1 and -1: fast, not bit-exact.

A Hadamard matrix of order 2^k is the Kronecker product of smaller ones, so a row seen as a box of
two or three sides is multiplied along each of them in turn.
"""

from __future__ import annotations

import torch
from torch import Tensor

from hadamard_finder.transform.arguments import Scale
from hadamard_finder.transform.butterfly import signs_of
from hadamard_finder.transform.chunked import GREATEST, as_factor, chunk_size, finish, two_buffers

# The widest row for which one product beats two, by dtype.
_ONE_PRODUCT = {"torch.bfloat16": 512, "torch.float16": 64, "torch.float32": 64}

_blocks: dict[tuple[int, int, torch.dtype, torch.device], Tensor] = {}


def precise_enough(x: Tensor, scale: Scale) -> bool:
    """False where float32 products are set to run in TF32 or bfloat16, or refuse the scale."""
    if x.dtype == torch.float64:
        return True
    if not isinstance(scale, torch.Tensor) and abs(scale) > GREATEST:
        return False
    try:
        return torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:
        # It raises once anyone has set the newer switches, which live with each backend.
        backend = torch.backends.mkldnn if x.device.type == "cpu" else torch.backends.cuda
        return backend.matmul.fp32_precision in ("ieee", "none")


def matmul(x: Tensor, scale: Scale, order: int, transposed: bool) -> Tensor:
    """(H_order kron H_{2^k}) x * scale along the last dimension, which is order * 2^k wide.

    Relative error against float64 at most 4 eps(float32) log2(width) before the rounding to x's
    dtype. At most 3e-4 of bfloat16 results differ from the exact algorithms, by a last bit; of
    float16 results at most 1e-3 to width 4096 and 3e-3 above.
    """
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return out
    width = x.shape[-1]
    if _in_one_product(x, scale, order):
        block, flat = _block(1, width, False, x.dtype, x.device), out.view(-1, width)
        torch.addmm(flat, x.reshape(-1, width), block, beta=0, alpha=float(scale), out=flat)
        return out
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    factor = as_factor(scale, x.device, dtype)
    # Any other layout is copied to where the result will be: a chunk is read before it is written.
    source = (x if x.is_contiguous() else out.copy_(x)).view(-1, width)
    chunk = chunk_size(x.device)
    if width > chunk:
        for row, result in zip(source, out.view(-1, width), strict=True):
            _long_row(row, result, factor, order, transposed, chunk // 4)
        return out
    at_once = chunk // width
    blocks = _factors(order, width // order, transposed, factor)
    buffers = two_buffers(min(chunk, x.numel()), factor)
    results = out.view(-1, width)
    # The last of several products can scale, and write the result if that needs no rounding; not
    # where the scale may not be read. An only product might read what it writes.
    alpha = None if isinstance(scale, torch.Tensor) or len(blocks) < 2 else float(scale)
    for start in range(0, source.shape[0], at_once):
        given, result = source[start : start + at_once], results[start : start + at_once]
        if alpha is not None and x.dtype == dtype:
            _products(given, blocks, buffers, alpha, result)
        elif alpha is not None:
            result.copy_(_products(given, blocks, buffers, alpha).view(given.shape))
        else:
            finish(_products(given, blocks, buffers).view(given.shape), factor, result)
    return out


def _in_one_product(x: Tensor, scale: Scale, order: int) -> bool:
    """Whether one product in x's own dtype is fast, with the scale applied before its rounding."""
    if order > 1 or isinstance(scale, torch.Tensor):
        return False
    if x.shape[-1] > _ONE_PRODUCT.get(str(x.dtype), 0):
        return False
    if x.dtype == torch.float32:
        return x.is_contiguous()
    # Elsewhere 16-bit products may add up in 16 bits.
    if x.device.type != "cpu":
        return False
    name = "_is_mkldnn_bf16_supported" if x.dtype == torch.bfloat16 else "_is_mkldnn_fp16_supported"
    supported = getattr(torch.ops.mkldnn, name, None)
    return supported is not None and bool(supported())


def _factors(order: int, width: int, transposed: bool, like: Tensor) -> list[Tensor]:
    """The blocks to multiply by, innermost first, whose Kronecker product is the whole matrix."""
    stages = width.bit_length() - 1
    # Measured: one product to width 64, two near-equal ones to 1024; above, 32 comes first.
    first = [] if stages <= 10 else [32]
    rest = stages - 5 * len(first)
    count = 1 if stages <= 6 else -(-rest // 5)
    sizes = first + [1 << rest // count + (index < rest % count) for index in range(count)]
    blocks = [_block(1, size, False, like.dtype, like.device) for size in sizes if size > 1]
    if order > 1:
        blocks.append(_block(order, 1, transposed, like.dtype, like.device))
    return blocks


def _products(
    given: Tensor,
    blocks: list[Tensor],
    buffers: list[Tensor],
    alpha: float = 1.0,
    result: Tensor | None = None,
) -> Tensor:
    """The products along every side in turn, times alpha, in result or one of the two buffers."""
    spare, other = (buffer[: given.numel()] for buffer in buffers)
    # A row of one element has no blocks, and its copy is what may be overwritten.
    unread = given.dtype == spare.dtype and len(blocks) > 0
    current = given.view(-1) if unread else other.copy_(given.view(-1))
    inner = 1
    for index, block in enumerate(blocks):
        size = block.shape[0]
        last = index == len(blocks) - 1
        to = spare if result is None or not last else result.view(-1)
        factor = alpha if last else 1.0
        if inner == 1:
            rows, out = current.view(-1, size), to.view(-1, size)
            torch.addmm(out, rows, block.t(), beta=0, alpha=factor, out=out)
        else:
            box, out = current.view(-1, size, inner), to.view(-1, size, inner)
            same = block.expand(box.shape[0], size, size)
            torch.baddbmm(out, same, box, beta=0, alpha=factor, out=out)
        current, spare, other = to, other, spare
        inner *= size
    return current


def _long_row(
    row: Tensor, out: Tensor, factor: Tensor, order: int, transposed: bool, chunk: int
) -> None:
    """One row longer than a chunk: pieces of it first, then slabs that cut across the pieces."""
    blocks = row.numel() // order
    size = min(chunk, blocks)
    # Sums that out cannot hold unrounded wait in a row of their own.
    waiting = out if out.dtype == factor.dtype else torch.empty_like(out, dtype=factor.dtype)
    waiting, row, out = waiting.view(-1, size), row.view(-1, size), out.view(-1, size)
    buffers = two_buffers(size, waiting)
    inside = _factors(1, size, False, waiting)
    for given, sums in zip(row, waiting, strict=True):
        sums.copy_(_products(given, inside, buffers))
    across = _block(order, blocks // size, transposed, factor.dtype, row.device)
    slab = 1 << max(size // row.shape[0], 1).bit_length() - 1
    sums = torch.empty((row.shape[0], slab), dtype=factor.dtype, device=row.device)
    for start in range(0, size, slab):
        part = slice(start, start + slab)
        # Into a buffer, as everywhere here: autocast leaves such calls their dtype.
        finish(torch.mm(across, waiting[:, part], out=sums), factor, out[:, part])


def _block(
    order: int, width: int, transposed: bool, dtype: torch.dtype, device: torch.device
) -> Tensor:
    """H_order kron H_width."""
    key = -order if transposed else order, width, dtype, device
    block = _blocks.get(key)
    if block is None:
        # A tensor born under inference_mode could never be used in training.
        with torch.inference_mode(False), torch.no_grad():
            block = _build(order, width, dtype, device)
            block = block.t().contiguous() if transposed else block
        # One born while a CUDA graph is captured lives in the graph's memory.
        if device.type != "cuda" or not torch.cuda.is_current_stream_capturing():
            _blocks[key] = block
    return block


def _build(order: int, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    two = torch.ones((1, 1), dtype=dtype, device=device)
    while two.shape[0] < width:
        two = torch.cat((torch.cat((two, two), 1), torch.cat((two, -two), 1)))
    return two if order == 1 else torch.kron(signs_of(order, dtype, device), two)
