"""torchrun with two ranks over gloo: DDP, and a mesh of DTensors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support import REPO, Result

torch = pytest.importorskip("torch")
if not torch.distributed.is_gloo_available():
    pytest.skip("this build of torch has no gloo", allow_module_level=True)

JOBS = Path(__file__).resolve().parent / "jobs"


def ranks_that_warned(result: Result) -> list[str]:
    return [
        line.partition(":")[0]
        for line in result.err.splitlines()
        if "is served by hadamard_finder" in line
    ]


def test_ddp_ranks_agree_with_each_other_and_with_one_process(
    torchrun: Callable[[Path], Result],
) -> None:
    result = torchrun(JOBS / "ddp_job.py").check()

    (line,) = [line for line in result.out.splitlines() if "FACTS" in line]
    zero, one = json.loads(line.partition("FACTS")[2])
    for rank in (zero, one):
        assert rank["started"]
        assert rank["server"] == "stand-in"
        # The mean over two halves, summed in another order than over the whole.
        assert rank["from_one_process"] < 1e-6
    assert zero["gradients"] == one["gradients"]
    assert ranks_that_warned(result) == ["[default0]"]


def test_dtensor_keeps_its_placement_and_equals_one_process(
    torchrun: Callable[[Path], Result],
) -> None:
    result = torchrun(REPO / "examples" / "torchrun_dtensor.py").check()

    said = [line.partition(":")[2] for line in result.out.splitlines()]
    assert "standin" in said[0]
    assert said[1:] == [
        "S(0) -> S(0): equals one process",
        "S(1) -> S(1): equals one process",
        "R -> R: equals one process",
        "P(sum) -> P(sum): equals one process",
        "S(2) -> R: equals one process",
        "gradient of S(0): equals one process",
    ]
    assert ranks_that_warned(result) == ["[default0]"]
