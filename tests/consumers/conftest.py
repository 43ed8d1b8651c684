"""Children that run other people's software, with and without the start-up file."""

from __future__ import annotations

import importlib.metadata
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import REPO, Result, run_python

HERE = Path(__file__).resolve().parent
CHILD = HERE / "child"
# One thread, because the tensors are small; no look at a hub, because nothing is fetched from one.
QUIET = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}
# Some import for ten seconds, and longer where the cores are busy.
TIMEOUT = 300

Child = Callable[..., Any]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("consumers")


@pytest.fixture(scope="session")
def need() -> Callable[..., None]:
    """Skips, and says why, where a distribution is missing or has another version."""

    def check(distribution: str, version: str) -> None:
        try:
            found = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            found = "none"
        if found != version:
            pytest.skip(f"needs {distribution}=={version}, found {found}")

    return check


@pytest.fixture
def started(tmp_path: Path) -> Child:
    """Runs code in a child whose start-up file put the finder in place; returns what it tells."""

    def child(code: str, **env: str) -> Any:
        options = {"env": {**QUIET, **env}, "cwd": tmp_path, "timeout": TIMEOUT}
        return read(run_python(code, path=[CHILD], **options))

    return child


@pytest.fixture
def unstarted(tmp_path: Path) -> Child:
    """The same, but nothing of ours runs unless the code calls it.

    -S reads no .pth file; PYTHONPATH then brings the packages back, as with ``pip --target``.
    """

    def child(code: str, **env: str) -> Any:
        folders = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
        path = [CHILD, *folders, REPO]
        options = {"env": {**QUIET, **env}, "cwd": tmp_path, "timeout": TIMEOUT}
        return read(run_python(code, flags=["-S"], path=path, **options))

    return child


def read(result: Result) -> Any:
    facts = result.json()
    facts["warnings"] = result.err.count("is served by hadamard_finder")
    return facts
