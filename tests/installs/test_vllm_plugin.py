"""The entry point that vLLM loads, called as vLLM calls it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

LOAD = """
import json, sys, types
from importlib.metadata import entry_points

consumer = types.ModuleType("consumer")
consumer.hadamard_transform = None
sys.modules["consumer"] = consumer
(point,) = entry_points(group="vllm.general_plugins", name="hadamard_finder")
register = point.load()
"""

ASK = """
marks = [getattr(type(finder), "__hadamard_finder__", False) for finder in sys.meta_path]
package = sys.modules.get("fast_hadamard_transform")
print(json.dumps({
    "finders": marks.count(True),
    "torch": "torch" in sys.modules,
    "served": getattr(package, "__hadamard_finder__", None),
    "repaired": callable(consumer.hadamard_transform),
}))
"""

CALL_TWICE = "assert register() is None\nassert register() is None\n"


@pytest.fixture
def folder(wheel: Path, make_venv: Any) -> Path:
    """A folder for PYTHONPATH, in which start-up files do not run."""
    other = make_venv("target", torch="none")
    other.install(wheel)
    return other.site_packages


def test_where_a_start_up_file_ran_nothing_is_imported_or_said(wheel: Path, make_venv: Any) -> None:
    venv = make_venv()
    venv.install(wheel)
    result = venv.run(LOAD + CALL_TWICE + ASK)
    assert result.json() == {"finders": 1, "torch": False, "served": None, "repaired": False}
    assert result.err == ""


def test_where_none_ran_it_activates_and_repairs(folder: Path, make_venv: Any) -> None:
    venv = make_venv()
    before = venv.run(LOAD + ASK, path=[folder]).json()
    assert before == {"finders": 0, "torch": False, "served": None, "repaired": False}
    result = venv.run(LOAD + CALL_TWICE + ASK, path=[folder])
    assert result.json() == {"finders": 1, "torch": True, "served": True, "repaired": True}
    assert result.err.count("\n") == 1


def test_off(folder: Path, make_venv: Any) -> None:
    env = {"HADAMARD_FINDER": "off"}
    result = make_venv().run(LOAD + CALL_TWICE + ASK, path=[folder], env=env)
    assert result.json() == {"finders": 1, "torch": False, "served": None, "repaired": False}
    assert result.err == ""


@pytest.mark.parametrize(
    "torch", [None, "raise OSError('libtorch_cpu.so: cannot open shared object file')\n"]
)
def test_it_never_raises(torch: str | None, folder: Path, make_venv: Any, tmp_path: Path) -> None:
    venv = make_venv(torch="none")
    if torch is not None:
        (tmp_path / "torch.py").write_text(torch)
    result = venv.run(LOAD + CALL_TWICE + ASK, path=[folder, tmp_path])
    assert result.json() == {"finders": 1, "torch": False, "served": None, "repaired": False}
    assert result.err == ""


def test_it_swallows_no_interrupt(folder: Path, make_venv: Any, tmp_path: Path) -> None:
    venv = make_venv(torch="none")
    (tmp_path / "torch.py").write_text("raise KeyboardInterrupt\n")
    code = LOAD + "try:\n    register()\nexcept KeyboardInterrupt:\n    print('true')\n"
    assert venv.run(code, path=[folder, tmp_path]).json() is True
