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

from hadamard_finder.report.facts import (
    Distribution,
    FinderState,
    Finding,
    Real,
    Setting,
    StartupFile,
    Status,
    Torch,
)

SCHEMA = REPO / "hadamard_finder" / "report" / "status.schema.json"


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


@pytest.fixture
def sample() -> Status:
    """A status as one is found often: the extension needs CUDA, and torch is a CPU build."""
    missing = "libc10_cuda.so: cannot open shared object file"
    package = "/site/fht/__init__.py"
    return Status(
        schema=1,
        version="0.1.0",
        python="3.11.7",
        scope="a fresh process",
        source="stand-in",
        works=True,
        reason=f"ImportError: {missing}",
        location="/site/hadamard_finder/standin/fast_hadamard_transform/__init__.py",
        imported=False,
        active=True,
        real=Real(
            installed=True,
            distributions=(Distribution("fast-hadamard-transform", "1.1.0"),),
            copies=(package,),
            location=package,
            extension="/site/fast_hadamard_transform_cuda.so",
            unusable_extensions=(),
            version="1.1.0",
            loads=False,
            error_type="ImportError",
            error=missing,
            signal=None,
            timed_out=False,
            seconds=None,
        ),
        finder=FinderState(0, ()),
        startup=(
            StartupFile(
                "/site/hadamard_finder.pth",
                "import hadamard_finder.finder; hadamard_finder.finder.start()",
                True,
                True,
                "",
            ),
            StartupFile(
                "/site/hadamard_finder.start",
                "hadamard_finder.finder:start",
                True,
                False,
                "it is for Python 3.15 and later",
            ),
        ),
        torch=Torch(True, "2.13.0+cpu", "cpu", ("cpu",), None),
        algorithm="butterfly",
        swept=(),
        leftovers=(),
        settings=(
            Setting("HADAMARD_FINDER", "auto", "default", None),
            Setting("HADAMARD_FINDER_ALGORITHM", "butterfly", "default", None),
        ),
        checks=None,
        consumers=None,
        findings=(
            Finding(
                "torch-without-cuda",
                "note",
                "The extension needs a CUDA build of torch, but torch 2.13.0+cpu is a CPU build.",
                "For the CUDA kernel, install a CUDA build of torch, then the package again:",
                "pip install it",
            ),
        ),
    )
