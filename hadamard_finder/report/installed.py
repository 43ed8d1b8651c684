"""What lies on the disk: copies of the package, distributions, torch's build. Imports nothing."""

from __future__ import annotations

import ast
import os
import platform
import sys
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder
from pathlib import Path

from hadamard_finder.finder import EXTENSION, PACKAGE
from hadamard_finder.report import metadata
from hadamard_finder.report.facts import Distribution, Torch


def copies() -> tuple[str, ...]:
    """Return the file of each copy of the package on sys.path, in that order."""
    return tuple(spec.origin for spec in _specs(PACKAGE) if spec.loader is not None and spec.origin)


def extension() -> str | None:
    """Return the file of the extension that this Python would load."""
    return next((spec.origin for spec in _specs(EXTENSION) if spec.origin), None)


def unusable_extensions() -> tuple[str, ...]:
    """Return files of the extension on sys.path that this Python does not take."""
    found = []
    for entry in _entries():
        try:
            names = sorted(os.listdir(entry or "."))
        except OSError:
            continue
        for name in names:
            suffix = name.removeprefix(EXTENSION)
            compiled = suffix != name and suffix.endswith((".so", ".pyd"))
            if compiled and suffix not in EXTENSION_SUFFIXES:
                found.append(os.path.join(entry, name))
    return tuple(found)


def is_lfs_pointer(path: str | None) -> bool:
    try:
        with open(path or "", "rb") as file:
            return file.read(24) == b"version https://git-lfs."
    except OSError:
        return False


def distributions() -> tuple[Distribution, ...]:
    """Return the installed distributions that bring the package along, stand-in not included."""
    found: dict[str, Distribution] = {}
    for dist in metadata.distributions():
        top_level = (dist.read_text("top_level.txt") or "").split()
        record = dist.read_text("RECORD") or ""
        if (
            PACKAGE in top_level
            or record.startswith(f"{PACKAGE}/")
            or f"\n{PACKAGE}/" in record
            or f"\n{PACKAGE}.py," in record
        ):
            name = dist.metadata["Name"] or "?"
            found.setdefault(name, Distribution(name, dist.version))
    return tuple(found[name] for name in sorted(found))


def torch(devices: tuple[str, ...] | None, error: str | None) -> Torch:
    """Return version and build of torch, read from its files; the rest is what a child told."""
    spec = PathFinder.find_spec("torch")
    if spec is None or spec.loader is None or spec.origin is None:
        return Torch(False, None, None, devices, error)
    values = _assignments(Path(spec.origin).with_name("version.py"))
    try:
        version: str | None = metadata.version("torch")
    except metadata.PackageNotFoundError:
        version = values.get("__version__")
    if not values:
        backend = None
    elif sys.platform == "darwin" and platform.machine() == "arm64":
        backend = "mps"
    else:
        backend = next((kind for kind in ("hip", "cuda", "xpu") if values.get(kind)), "cpu")
    return Torch(True, version, backend, devices, error)


def _assignments(file: Path) -> dict[str, str]:
    """Return the names that a module sets to strings."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return {}
    found = {}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        text = value.value if isinstance(value, ast.Constant) else None
        if isinstance(targets[0], ast.Name) and isinstance(text, str):
            found[targets[0].id] = text
    return found


def _entries() -> Iterator[str]:
    seen = set()
    for entry in sys.path:
        real = os.path.realpath(entry or ".")
        if real not in seen:
            seen.add(real)
            yield entry


def _specs(name: str) -> Iterator[ModuleSpec]:
    for entry in _entries():
        spec = PathFinder.find_spec(name, [entry])
        if spec is not None:
            yield spec
