"""The transform of a DTensor: every rank transforms its own shard.

The operator is linear and acts along the last dimension only, so shards of any other dimension,
replicas and partial sums stay what they are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeGuard

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


def is_dtensor(x: Tensor) -> TypeGuard[DTensor]:
    # Nobody holds a DTensor before its module was imported, which takes a second.
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(x, module.DTensor)


def on_shards(x: DTensor, run: Callable[[Tensor], Tensor]) -> Tensor:
    """run on the local shards, after gathering those of the last dimension."""
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

    last = x.dim() - 1
    placements = [
        placement
        if (isinstance(placement, Shard) and placement.dim % x.dim() != last)
        or (isinstance(placement, Partial) and placement.reduce_op in ("sum", "avg"))
        else Replicate()
        for placement in x.placements
    ]
    if placements != list(x.placements):
        x = x.redistribute(placements=placements)
    # The gradient of each summand of a sum is the whole gradient.
    gradients = [Replicate() if isinstance(p, Partial) else p for p in placements]
    shard = run(x.to_local(grad_placements=gradients))
    strides = torch.empty(x.shape, device="meta").stride()
    return DTensor.from_local(
        shard, x.device_mesh, placements, run_check=False, shape=x.shape, stride=strides
    )
