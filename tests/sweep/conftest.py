"""A process, in miniature, whose consumers were imported before the package could be."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest

from hadamard_finder import finder
from hadamard_finder.repair import rules

PACKAGE = "fast_hadamard_transform"
INTERFACE = f"{PACKAGE}.{PACKAGE}_interface"
EXTENSION = f"{PACKAGE}_cuda"


def _module(name: str, **names: Any) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(names)
    return module


class Late:
    """Writes consumers, imports them while the package is blocked, and lets it in afterwards."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        interface = _module(
            INTERFACE,
            hadamard_transform=lambda x, scale=1.0: (x, scale),
            hadamard_transform_12N=lambda x, scale=1.0: (12, x, scale),
            fast_hadamard_transform_cuda=None,
        )
        self.function = interface.hadamard_transform
        self.package = _module(
            PACKAGE,
            __path__=[],
            hadamard_transform=self.function,
            fast_hadamard_transform_interface=interface,
        )
        self.extension = _module(EXTENSION, fast_hadamard_transform=lambda x, scale: (x, scale))
        self.there = {
            PACKAGE: self.package,
            INTERFACE: interface,
            EXTENSION: self.extension,
        }

    def write(self, name: str, source: str) -> Path:
        path = self.folder.joinpath(*name.split(".")).with_suffix(".py")
        for parent in path.relative_to(self.folder).parents:
            if parent != Path("."):
                (self.folder / parent).mkdir(exist_ok=True)
                (self.folder / parent / "__init__.py").touch()
        path.write_text(dedent(source), encoding="utf-8")
        return path

    def consumer(self, name: str, source: str) -> Any:
        """Return a module of that source that was imported too early."""
        self.write(name, source)
        return self.load(name)

    def load(self, name: str) -> Any:
        self.block()
        importlib.invalidate_caches()
        module = importlib.import_module(name)
        self.miss(name)
        return module

    def miss(self, name: str) -> None:
        finder.STATE.missed[name] = id(sys.modules[name])

    def block(self) -> None:
        for name in self.there:
            sys.modules[name] = None  # type: ignore[assignment]

    def arrive(self) -> None:
        sys.modules.update(self.there)

    def sweep(self, everything: bool = False) -> rules.Sweep:
        self.arrive()
        return rules.sweep(everything=everything)


@pytest.fixture
def late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Late]:
    before = sys.modules.copy()
    monkeypatch.setattr(finder.STATE, "missed", {})
    monkeypatch.setattr(rules, "_BOOK", rules._Book())
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("HADAMARD_FINDER", raising=False)
    yield Late(tmp_path)
    for name in sys.modules.copy():
        if name not in before:
            del sys.modules[name]
    sys.modules.update(before)


@pytest.fixture
def short() -> Callable[[rules.Sweep], tuple[list[str], list[str]]]:
    """Records in short: what was filled with what, what was left and on which line."""

    def shorten(sweep: rules.Sweep) -> tuple[list[str], list[str]]:
        dataclasses.asdict(sweep)
        filled = [f"{r.module}.{r.name}: {r.before} -> {r.after} @{r.line}" for r in sweep.repairs]
        left = [f"{r.module}.{r.name} @{r.line}" for r in sweep.leftovers]
        return filled, left

    return shorten
