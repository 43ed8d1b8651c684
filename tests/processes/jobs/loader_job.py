"""Two DataLoader workers that transform what they load. Arguments: fork or spawn; who imports."""

from job_facts import facts  # isort: skip

import json
import os
import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Rotated(Dataset[dict[str, object]]):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> dict[str, object]:
        from fast_hadamard_transform import hadamard_transform

        x = torch.randn(64, generator=torch.Generator().manual_seed(index)).bfloat16()
        return {"y": hadamard_transform(x, 0.125).tolist(), "process": os.getpid(), **facts()}


def as_they_are(items: list[dict[str, object]]) -> list[dict[str, object]]:
    return items


if __name__ == "__main__":
    method, importer = sys.argv[1:]
    if importer == "parent-first":
        import fast_hadamard_transform  # noqa: F401
    data = Rotated()
    loader = DataLoader(
        data, num_workers=2, collate_fn=as_they_are, multiprocessing_context=method, batch_size=2
    )
    items = [item for batch in loader for item in batch]
    same = [item["y"] for item in items] == [data[index]["y"] for index in range(len(data))]
    workers = {item.pop("process") for item in items} - {os.getpid()}
    seen = sorted({json.dumps([item["started"], item["server"]]) for item in items})
    print(json.dumps({"same": same, "workers": len(workers), "seen": seen}))
