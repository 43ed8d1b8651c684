"""Fixtures that run ``python -m hadamard_finder status`` in real child processes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support import REPO, STUB_TORCH, run

SCHEMA = REPO / "hadamard_finder" / "status.schema.json"


@dataclass(frozen=True)
class Answer:
    """What one call of status came to."""

    code: int
    status: dict[str, Any]

    def finding(self, code: str) -> dict[str, Any]:
        """Return the finding of that code; fail where there is none, or more than one."""
        (found,) = [item for item in self.status["findings"] if item["code"] == code]
        return found

    @property
    def codes(self) -> list[str]:
        return [item["code"] for item in self.status["findings"]]


@pytest.fixture(scope="session")
def ask() -> Callable[..., Answer]:
    """Run ``status --json``; the torch in it is the stub, unless ``torch`` says otherwise."""

    def ask(
        *arguments: str,
        path: Sequence[Path] = (),
        torch: Path | None = STUB_TORCH,
        env: Mapping[str, str] | None = None,
        flags: Sequence[str] = (),
        python: str | Path = sys.executable,
        cwd: Path | None = None,
    ) -> Answer:
        command = [python, *flags, "-m", "hadamard_finder", "status", "--json", *arguments]
        path = [*path, torch] if torch else path
        done = run(command, path=path, env=env, cwd=cwd)
        assert done.out, done.err
        status = json.loads(done.out)
        assert problems(status, json.loads(SCHEMA.read_text())) == []
        return Answer(done.code, status)

    return ask


@pytest.fixture(scope="session")
def validate() -> Callable[[Any, Any], list[str]]:
    return problems


def problems(value: Any, schema: Any, where: str = "$", root: Any = None) -> list[str]:
    """Return where ``value`` differs from a JSON schema; knows the keywords that ours uses."""
    root = schema if root is None else root
    if "$ref" in schema:
        return problems(value, root["$defs"][schema["$ref"].rpartition("/")[2]], where, root)
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: {value!r} is none of {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        found.append(f"{where}: {value!r} is not {schema['const']!r}")
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        return [*found, f"{where}: {value!r} is no {' or '.join(kinds)}"]
    if isinstance(value, dict):
        found += [f"{where}: no {name}" for name in schema.get("required", ()) if name not in value]
        for name, part in schema.get("properties", {}).items():
            if name in value:
                found += problems(value[name], part, f"{where}.{name}", root)
    if isinstance(value, list):
        for index, item in enumerate(value):
            found += problems(item, schema.get("items", {}), f"{where}[{index}]", root)
    return found


def _is(value: Any, kind: str) -> bool:
    python = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "null": type(None),
        "integer": int,
        "number": (int, float),
    }[kind]
    return isinstance(value, python) and (kind == "boolean" or not isinstance(value, bool))


@pytest.fixture
def small_venv(make_venv: Callable[..., Any], wheel: Path) -> Callable[..., Any]:
    """A factory of virtual environments with our wheel and torch, and nothing else."""

    def make(**options: Any) -> Any:
        venv = make_venv(**options)
        venv.install(wheel)
        return venv

    return make
