"""DataLoader workers: copies of the parent, or new interpreters."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable

import pytest
from support import Result

pytest.importorskip("torch")

Job = Callable[..., Result]


@pytest.mark.parametrize(
    ("method", "importer", "warnings"),
    [
        # A forked worker knows what its parent has said; each new interpreter is a process of its
        # own, and the parent imports at last, to compare.
        pytest.param("fork", "parent-first", 1, id="fork"),
        pytest.param("fork", "workers-first", 3, id="fork, the workers import first"),
        pytest.param("spawn", "parent-first", 3, id="spawn"),
    ],
)
def test_workers_transform_as_the_parent_does(
    job: Job, method: str, importer: str, warnings: int
) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    result = job("loader_job.py", method, importer)

    assert result.json() == {"same": True, "workers": 2, "seen": ['[true, "stand-in"]']}
    assert result.err.count("is served by hadamard_finder") == warnings


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_another_rank_are_silent(job: Job, method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    result = job("loader_job.py", method, "workers-first", RANK="1")

    assert result.json()["workers"] == 2
    assert "hadamard_finder" not in result.err
