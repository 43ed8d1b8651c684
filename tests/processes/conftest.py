"""Jobs of several processes, each started as its users start it."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from support import REPO, Result, run

JOBS = Path(__file__).resolve().parent / "jobs"
# One thread each: two ranks of a small job gain nothing from more, and two cores lose by them.
QUIET = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
# Each process imports torch, which takes long where the cores are busy; a hang is what this ends.
TIMEOUT = 300

Job = Callable[..., Result]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Runs one of the files in jobs/ as a script; with ``started=False`` no start-up file runs."""

    def start(name: str, *arguments: str | Path, started: bool = True, **env: str) -> Result:
        flags = [] if started else ["-S"]
        folders = dict.fromkeys(sysconfig.get_path(key) for key in ("purelib", "platlib"))
        path = [] if started else [*folders, REPO]
        command = [sys.executable, *flags, JOBS / name, *arguments]
        return run(command, env={**QUIET, **env}, path=path, cwd=tmp_path, timeout=TIMEOUT)

    return start


@pytest.fixture
def torchrun(tmp_path: Path) -> Callable[[Path], Result]:
    """Runs a script on two ranks; each line of output begins with the rank that wrote it."""

    def start(script: Path) -> Result:
        flags = ["--standalone", "--nproc-per-node", "2", "--tee", "3", "--log-dir", tmp_path]
        command = [sys.executable, "-m", "torch.distributed.run", *flags, script]
        return run(command, env=QUIET, cwd=tmp_path, timeout=TIMEOUT)

    return start
