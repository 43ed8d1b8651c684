"""Two ranks made by torch.multiprocessing.spawn; the rendezvous is a file, named by the caller."""

from job_facts import digest, facts, keep_warnings, warnings  # isort: skip

import json
import os
import sys

import torch
import torch.distributed as dist

RANKS = 2


def rotate() -> torch.Tensor:
    from fast_hadamard_transform import hadamard_transform

    torch.manual_seed(0)
    x = torch.randn(16, 128).bfloat16()
    return hadamard_transform(x, scale=x.shape[-1] ** -0.5).float()


def worker(rank: int, meeting: str) -> None:
    # As every launcher does, and before the import: it is how the warning knows whose turn it is.
    os.environ["RANK"] = str(rank)
    keep_warnings()
    mine = {"rank": rank, **facts()}
    if mine["server"] == "stand-in":
        mine["bits"] = digest(rotate())
    mine["warnings"] = len(warnings)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=RANKS)
    everyone: list[object] = [None] * RANKS
    dist.all_gather_object(everyone, mine)
    if rank == 0:
        print(json.dumps(everyone), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(worker, args=(sys.argv[1],), nprocs=RANKS)
    if facts()["server"] == "stand-in":
        print(json.dumps(digest(rotate())))
