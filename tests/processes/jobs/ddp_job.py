"""One step of DDP over gloo, each rank on its share of a batch; started by torchrun."""

from job_facts import digest, facts  # isort: skip

import copy
import gc
import json

import torch
import torch.distributed as dist
from fast_hadamard_transform import hadamard_transform
from torch.nn.parallel import DistributedDataParallel


class Rotated(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(32, 128)
        self.outer = torch.nn.Linear(128, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.inner(x)
        return self.outer(hadamard_transform(hidden, scale=hidden.shape[-1] ** -0.5).relu())


def gradients(model: torch.nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    model(x).square().mean().backward()
    found = [parameter.grad for parameter in model.parameters()]
    return [gradient for gradient in found if gradient is not None]


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = Rotated()
    alone = copy.deepcopy(model)
    x = torch.randn(8 * ranks, 32)

    found = gradients(DistributedDataParallel(model), x[8 * rank : 8 * (rank + 1)])
    wanted = gradients(alone, x)
    away = max((a - b).norm() / b.norm() for a, b in zip(found, wanted, strict=True)).item()

    everyone: list[object] = [None] * ranks
    mine = {"rank": rank, "gradients": digest(*found), "from_one_process": away, **facts()}
    dist.all_gather_object(everyone, mine)
    if rank == 0:
        print("FACTS", json.dumps(everyone))
    # DDP is part of a cycle and holds the group: alive at the interpreter's end, gloo's threads may
    # ask for the GIL then, which aborts the process.
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
