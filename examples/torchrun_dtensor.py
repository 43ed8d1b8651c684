"""A DTensor through the transform, on two ranks.

    torchrun --standalone --nproc-per-node 2 examples/torchrun_dtensor.py

Needs torch 2.5 or newer and hadamard_finder; gloo on a CPU.

What to expect: for each placement a line that names the placement of the result. A tensor that is
sharded over rows, replicated, or a pending sum stays where it is: no rank talks to another. One
that is sharded over the last dimension is brought together first. The whole result equals that of
one process; the gradient of the sharded one, too. Rank 0 alone prints, and rank 0 alone warns that
the stand-in took over.
"""

import os
import sys

import torch
import torch.distributed as dist
from fast_hadamard_transform import hadamard_transform
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor


def main() -> None:
    dist.init_process_group("gloo")
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    rank = dist.get_rank()
    x = torch.randn(8, 6, 64, generator=torch.Generator().manual_seed(0))
    scale = x.shape[-1] ** -0.5
    wanted = hadamard_transform(x, scale)

    # A pending sum: what each rank holds adds up to x.
    part = DTensor.from_local(x / mesh.size(), mesh, [Partial("sum")])
    if rank == 0:
        print(f"served by {sys.modules[hadamard_transform.__module__].__file__}")
    inputs = [distribute_tensor(x, mesh, [placement]) for placement in (Shard(0), Shard(1))]
    inputs += [distribute_tensor(x, mesh, [Replicate()]), part]
    inputs += [distribute_tensor(x, mesh, [Shard(2)])]
    for tensor in inputs:
        y = hadamard_transform(tensor, scale)
        torch.testing.assert_close(y.full_tensor(), wanted)
        if rank == 0:
            print(f"{tensor.placements[0]} -> {y.placements[0]}: equals one process")

    leaf = distribute_tensor(x, mesh, [Shard(0)]).requires_grad_()
    hadamard_transform(leaf, scale).square().sum().backward()
    # The transform is orthogonal with this scale, so the gradient of |y|^2 is that of |x|^2.
    torch.testing.assert_close(leaf.grad.full_tensor(), 2 * x)
    if rank == 0:
        print(f"gradient of {leaf.placements[0]}: equals one process")
    dist.destroy_process_group()


if __name__ == "__main__":
    if "RANK" not in os.environ:
        sys.exit("start it with: torchrun --standalone --nproc-per-node 2 " + sys.argv[0])
    main()
