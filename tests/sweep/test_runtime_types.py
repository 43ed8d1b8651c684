"""What loads with the stand-in can be read by tools that resolve annotations, such as beartype."""

from __future__ import annotations

import importlib
import pkgutil
import typing

import pytest

pytest.importorskip("torch")

ROOMS = ("hadamard_finder.repair", "hadamard_finder.transform")
MODULES = ["hadamard_finder.takeover", "hadamard_finder.notice"] + [
    f"{room}.{found.name}"
    for room in ROOMS
    for found in pkgutil.iter_modules(importlib.import_module(room).__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_the_types_of_module_level_names_exist_at_run_time(name: str) -> None:
    module = importlib.import_module(name)

    assert typing.get_type_hints(module).keys() == getattr(module, "__annotations__", {}).keys()
