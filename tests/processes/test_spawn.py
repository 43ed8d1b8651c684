"""torch.multiprocessing.spawn: new interpreters, which get nothing from their parent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support import Result

torch = pytest.importorskip("torch")
if not torch.distributed.is_gloo_available():
    pytest.skip("this build of torch has no gloo", allow_module_level=True)

Job = Callable[..., Result]


def test_each_rank_has_its_own_start_up_file_and_the_same_bits(job: Job, tmp_path: Path) -> None:
    result = job("spawn_job.py", tmp_path / "meeting").check()

    ranks, alone = [json.loads(line) for line in result.out.splitlines()]
    assert [rank["started"] for rank in ranks] == [True, True]
    assert [rank["server"] for rank in ranks] == ["stand-in", "stand-in"]
    assert [rank["bits"] for rank in ranks] == [alone, alone]
    assert [rank["warnings"] for rank in ranks] == [1, 0]


def test_without_a_start_up_file_the_ranks_have_nothing(job: Job, tmp_path: Path) -> None:
    result = job("spawn_job.py", tmp_path / "meeting", started=False)

    # The counterpart of the test above: the stand-in comes from nowhere else.
    (ranks,) = [json.loads(line) for line in result.check().out.splitlines()]
    assert [rank["started"] for rank in ranks] == [False, False]
    assert [rank["server"] for rank in ranks] == ["ModuleNotFoundError", "ModuleNotFoundError"]
