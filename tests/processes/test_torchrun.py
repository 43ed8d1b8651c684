"""torchrun with two ranks over gloo: DDP, and a mesh of DTensors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def facts_of_both(result: Result) -> list[dict[str, Any]]:
    (line,) = [line for line in result.check().out.splitlines() if "FACTS" in line]
    both: list[dict[str, Any]] = json.loads(line.partition("FACTS")[2])
    for rank in both:
        assert rank["started"]
        assert rank["server"] == "stand-in"
    assert ranks_that_warned(result) == ["[default0]"]
    return both


def test_ddp_ranks_agree_with_each_other_and_with_one_process(
    torchrun: Callable[[Path], Result],
) -> None:
    zero, one = facts_of_both(torchrun(JOBS / "ddp_job.py"))

    # The mean over two halves, summed in another order than over the whole.
    assert zero["from_one_process"] < 1e-6
    assert one["from_one_process"] < 1e-6
    assert zero["gradients"] == one["gradients"]


def test_dtensors_run_on_their_shards_and_equal_one_process(
    torchrun: Callable[[Path], Result],
) -> None:
    zero, one = facts_of_both(torchrun(JOBS / "dtensor_job.py"))

    stay = {"S(0)": "S(0)", "S(1)": "S(1)", "R": "R", "sum": "P(sum)"}
    assert zero["results"].keys() == {*stay, "S(2)", "S(-1)"}
    for name, result in zero["results"].items():
        assert result["bits"] == one["results"][name]["bits"], name
        assert result["gradient_away"] < 1e-6, name
        assert result["away"] < 1e-6, name
        if name in stay:
            assert result["placement"] == stay[name]
            assert result["messages"] == 0, name
        else:
            assert result["messages"] > 0, name


def test_the_example_of_dtensors_says_what_it_says_to_expect(
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
