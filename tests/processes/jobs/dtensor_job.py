"""DTensors of every placement through the transform, on a mesh of two dimensions."""

from job_facts import digest, facts  # isort: skip

import json

import torch
import torch.distributed as dist
from fast_hadamard_transform import hadamard_transform
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    ranks = dist.get_world_size()
    # The first dimension has one rank, as a data-parallel one beside a tensor-parallel one might.
    mesh = dist.init_device_mesh("cpu", (1, ranks), mesh_dim_names=("data", "model"))
    generator = torch.Generator().manual_seed(0)
    # Seven rows and five columns on two ranks: no shard is like the other.
    x = torch.randn(7, 5, 64, generator=generator)
    upstream = torch.randn(x.shape, generator=generator)
    wanted, gradient = hadamard_transform(x, 0.125), hadamard_transform(upstream, 0.125)

    inputs = {
        str(placement): distribute_tensor(x, mesh, [Replicate(), placement])
        for placement in (Shard(0), Shard(1), Replicate(), Shard(2), Shard(-1))
    }
    inputs["sum"] = DTensor.from_local(x / ranks, mesh, [Replicate(), Partial("sum")])
    results = {}
    for name, tensor in inputs.items():
        leaf = tensor.detach().requires_grad_()
        with CommDebugMode() as counter:
            y = hadamard_transform(leaf, 0.125)
        (y * distribute_tensor(upstream, mesh, [Replicate(), Replicate()])).sum().backward()
        results[name] = {
            "placement": str(y.placements[1]),
            "messages": counter.get_total_counts(),
            "away": (y.full_tensor() - wanted).abs().max().item(),
            "gradient_away": (leaf.grad.full_tensor() - gradient).abs().max().item(),
            "bits": digest(y.full_tensor(), leaf.grad.full_tensor()),
        }

    everyone: list[object] = [None] * ranks
    dist.all_gather_object(everyone, {"results": results, **facts()})
    if dist.get_rank() == 0:
        print("FACTS", json.dumps(everyone))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
