"""Asks, inside a process, what the two names are and whether they are wholly so.

Standard library only, and valid on every Python we support: children of other interpreters import
this file, too.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
from types import ModuleType
from typing import Any

PACKAGE = "fast_hadamard_transform"
INTERFACE = f"{PACKAGE}.fast_hadamard_transform_interface"
EXTENSION = "fast_hadamard_transform_cuda"
VERSION = "1.1.0+hadamard.finder"


class _Listener(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.getMessage()}")


def listen() -> list[str]:
    """Return the list that whatever we log from now on ends up in."""
    listener = _Listener()
    logger = logging.getLogger("hadamard_finder")
    logger.addHandler(listener)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    return listener.lines


def family() -> dict[str, Any]:
    """Return what ``sys.modules`` holds under the two names and below them."""
    heads = (f"{PACKAGE}.", f"{EXTENSION}.")
    return {
        name: module
        for name, module in sys.modules.copy().items()
        if name in (PACKAGE, EXTENSION) or name.startswith(heads)
    }


def kind(module: Any) -> str:
    """Return "none", "stand-in", "foreign" (no spec: somebody's stub) or "real"."""
    if module is None:
        return "none"
    if getattr(module, "__hadamard_finder__", None) is True:
        return "stand-in"
    return "real" if getattr(module, "__spec__", None) is not None else "foreign"


def finders() -> int:
    """Return how many of ours stand on ``sys.meta_path``."""
    return sum(getattr(type(item), "__hadamard_finder__", False) is True for item in sys.meta_path)


def check_whole() -> str:
    """Return the package's kind; fail where anything of it is of another kind."""
    from hadamard_finder import finder

    assert finders() <= 1
    parts = family()
    for name, module in parts.items():
        if kind(module) in ("real", "stand-in"):
            _check_one(name, module, finder)
    package = parts.get(PACKAGE)
    whole = kind(package)
    if whole in ("real", "stand-in"):
        assert importlib.import_module(PACKAGE) is package
        for name, module in parts.items():
            # A None is a user's block, a module without a spec a user's stub.
            if whole == "stand-in" or kind(module) == "stand-in":
                assert kind(module) in (whole, "none"), f"{name} is not {whole}"
        assert package.__path__ == package.__spec__.submodule_search_locations
        for value in vars(package).values():
            if isinstance(value, ModuleType) and value.__name__.startswith(f"{PACKAGE}."):
                assert sys.modules.get(value.__name__) is value, f"{value.__name__} is stale"
    if whole == "stand-in":
        _check_standin(package, finder)
    return whole


def _check_one(name: str, module: Any, finder: Any) -> None:
    spec = module.__spec__
    assert module.__name__ == spec.name == name
    if spec.origin is None and kind(module) == "real":
        return  # a namespace: a folder without a file, imported while we were off or away
    assert module.__loader__ is spec.loader
    assert module.__file__ == spec.origin
    for value in (*vars(module).values(), *vars(spec).values()):
        assert type(value).__name__ != "Guard", f"{name} leads to a guard"
    home = os.path.join(os.path.dirname(finder.__file__), "standin") + os.sep
    ours = os.path.abspath(module.__file__).startswith(home)
    assert ours == (kind(module) == "stand-in"), module.__file__
    loader = getattr(spec.loader, "path", module.__file__)
    assert loader == module.__file__
    for value in vars(module).values():
        if callable(value) and getattr(value, "__module__", "") in (name, INTERFACE):
            code = getattr(value, "__code__", None)
            if code is not None and not value.__name__.startswith("_"):
                theirs = "hadamard_finder" not in value.__globals__["__name__"]
                assert theirs == (not ours) or value.__globals__ is vars(module), value


def _check_standin(package: Any, finder: Any) -> None:
    from hadamard_finder.transform import surface

    interface = sys.modules[INTERFACE]
    extension = sys.modules[EXTENSION]
    assert package.__version__ == VERSION
    assert package.hadamard_transform is surface.hadamard_transform
    assert interface.hadamard_transform is surface.hadamard_transform
    assert package.fast_hadamard_transform_interface is interface
    assert interface.fast_hadamard_transform_cuda is extension
    if extension is not None:
        assert extension.fast_hadamard_transform is surface.fast_hadamard_transform
    public = {name for name in vars(package) if not name.startswith("_")}
    assert public == {"hadamard_transform", "fast_hadamard_transform_interface"}
    assert PACKAGE in finder.STATE.causes
