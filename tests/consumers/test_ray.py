"""Ray: a task and two actors in worker processes that Ray starts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import REPO, run

# Ray would else report its use to its makers, and write a token into the home folder.
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "OMP_NUM_THREADS": "1"}
SAID = "1.1.0+hadamard.finder, start-up file: True, warnings:"


@pytest.fixture(autouse=True)
def ray(need: Callable[..., None]) -> None:
    need("ray", "2.60.0")


def test_task_and_actors_have_the_start_up_file_and_the_drivers_bits(tmp_path: Path) -> None:
    command = [sys.executable, REPO / "examples" / "ray_workers.py"]
    result = run(command, env=QUIET, cwd=tmp_path, timeout=300)

    assert result.check().out.splitlines() == [
        f"driver:  {SAID} 1",
        f"task: {SAID} 1; equals the driver",
        f"actor 0: {SAID} 1; equals the driver",
        f"actor 1: {SAID} 0; equals the driver",
    ]
