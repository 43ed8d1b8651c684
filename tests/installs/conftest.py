"""Installers, other builds of this repository, and children that wait: what these tests need."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from support import REPO, Result, clean_environment, run

_BUILT_FROM = ("hadamard_finder", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md")

_ASK = """
import json, sys
try:
    import fast_hadamard_transform
except BaseException as error:
    answer = {"by": None, "error": type(error).__name__, "text": str(error)}
else:
    ours = getattr(fast_hadamard_transform, "__hadamard_finder__", False)
    answer = {"by": "stand-in" if ours else "real", "file": fast_hadamard_transform.__file__}
    assert callable(fast_hadamard_transform.hadamard_transform)
marks = [getattr(type(finder), "__hadamard_finder__", False) for finder in sys.meta_path]
answer["finders"] = marks.count(True)
answer["optimize"] = sys.flags.optimize
print(json.dumps(answer))
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Children look for modules in the working directory first: it must not be the checkout."""
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))


@pytest.fixture(scope="session")
def ask() -> str:
    """Code that prints, as JSON, what an import of the package came to."""
    return _ASK


def _build(source: Path, target: str, folder: Path) -> Path:
    pytest.importorskip("hatchling", reason="hatchling, which builds, is not installed")
    run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder], cwd=source
    ).check()
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build(REPO, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="session")
def build_wheel(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Build a wheel from any folder of sources."""
    return lambda source: _build(source, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def newer_wheel(
    tmp_path: Path, build_wheel: Callable[[Path], Path]
) -> Callable[[dict[str, str]], Path]:
    """Build version 999.0 of this repository; ``changes`` maps a file to lines put on its top."""

    def build(changes: dict[str, str]) -> Path:
        source = tmp_path / "newer"
        source.mkdir()
        for name in _BUILT_FROM:
            if (REPO / name).is_dir():
                shutil.copytree(
                    REPO / name, source / name, ignore=shutil.ignore_patterns("__pycache__")
                )
            else:
                shutil.copy(REPO / name, source / name)
        face = source / "hadamard_finder" / "__init__.py"
        text = face.read_text()
        face.write_text(re.sub(r'^__version__ = ".*"$', '__version__ = "999.0"', text, flags=re.M))
        for name, lines in changes.items():
            changed = source / "hadamard_finder" / name
            changed.write_text(f"{lines}\n{changed.read_text()}")
        return build_wheel(source)

    return build


@pytest.fixture(scope="session")
def build_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with hatchling and what it needs: an editable install asks for it in the target.

    Links, not this environment's site-packages, where another hadamard_finder may be installed.
    """
    folder = tmp_path_factory.mktemp("build_tools")
    todo, seen = ["hatchling", "editables"], set[str]()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{name}, which builds, is not installed")
        for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            (folder / top).symlink_to(distribution.locate_file(top))
        for text in distribution.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                todo.append(requirement.name)
    return folder


@dataclass(frozen=True)
class Installer:
    """pip or uv, working on any environment, without an index and without other builds' caches."""

    name: str
    build_tools: Path

    def _run(self, python: Path, verb: str, *words: str | Path) -> Result:
        if self.name == "pip":
            command = [sys.executable, "-m", "pip", "--isolated", "--python", python, verb]
            if verb == "uninstall":
                command.append("--yes")
        else:
            command = [_uv(), "--no-config", "--no-cache", "--offline", "pip", verb]
            command += ["--python", python]
        return run([*command, *words], path=[self.build_tools]).check()

    def install(self, python: Path, *words: str | Path) -> Result:
        options = ["--no-index", "--no-deps", "--no-build-isolation"]
        return self._run(python, "install", *options, *words)

    def uninstall(self, python: Path) -> Result:
        return self._run(python, "uninstall", "hadamard-finder")


def _uv() -> str:
    if importlib.util.find_spec("uv") is not None:
        from uv import find_uv_bin

        return find_uv_bin()
    return shutil.which("uv") or pytest.skip("uv is not installed")


@pytest.fixture
def pip(build_tools: Path) -> Installer:
    pytest.importorskip("pip", reason="pip is not installed")
    return Installer("pip", build_tools)


@pytest.fixture(params=["pip", "uv"])
def installer(request: pytest.FixtureRequest, build_tools: Path) -> Installer:
    if request.param == "pip":
        pytest.importorskip("pip", reason="pip is not installed")
    else:
        _uv()
    return Installer(request.param, build_tools)


class Waiting:
    """A child that has run its first half and runs the second when told."""

    def __init__(self, python: Path, first: str, second: str) -> None:
        wait = "\nimport sys\nprint('ready', flush=True)\nsys.stdin.readline()\n"
        self._process = subprocess.Popen(
            [python, "-c", f"{first}{wait}{second}"],
            env=clean_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            pytest.fail(f"the first half failed: {self._process.communicate()}")

    def finish(self) -> Result:
        out, err = self._process.communicate("go on\n", timeout=120)
        return Result(self._process.returncode, out, err)

    def stop(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
            self._process.communicate()


@pytest.fixture
def wait() -> Iterator[Callable[..., Waiting]]:
    """Start a child that pauses between two pieces of code."""
    children: list[Waiting] = []

    def start(python: Path, first: str, second: str) -> Waiting:
        children.append(Waiting(python, first, second))
        return children[-1]

    yield start
    for child in children:
        child.stop()


@pytest.fixture
def listing() -> Callable[[Path], set[str]]:
    """Return all files below a folder, __pycache__ and all."""
    return lambda folder: {str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file()}
