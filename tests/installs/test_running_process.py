"""Files replaced or removed under a process that has the finder but not yet the package."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults import build_real

PLAIN = {
    "by": None,
    "error": "ModuleNotFoundError",
    "text": "No module named 'fast_hadamard_transform'",
    "finders": 1,
    "optimize": 0,
}

NOTHING = "import importlib.util\nassert not importlib.util.find_spec('fast_hadamard_transform')\n"


def answer(result: Any) -> Any:
    return json.loads(result.check().out.splitlines()[-1])


def test_upgraded(
    pip: Any,
    wheel: Path,
    newer_wheel: Callable[..., Path],
    make_venv: Any,
    wait: Callable[..., Any],
    ask: str,
) -> None:
    venv = make_venv()
    pip.install(venv.python, wheel)
    child = wait(venv.python, "", ask)
    pip.install(venv.python, "--upgrade", newer_wheel({}))
    result = child.finish()
    served = answer(result)
    assert (served["by"], served["finders"]) == ("stand-in", 1)
    assert result.err.count("\n") == 1
    assert result.err.startswith("fast_hadamard_transform is served by hadamard_finder")


# A new file may ask the old finder, which is in memory, for a name that it does not have yet.
NEEDS_NEWER_FINDER = "from hadamard_finder.finder import a_name_of_the_future"


def test_upgraded_to_a_take_over_that_needs_the_newer_finder(
    wheel: Path,
    newer_wheel: Callable[..., Path],
    make_venv: Any,
    wait: Callable[..., Any],
    ask: str,
) -> None:
    venv = make_venv()
    venv.install(wheel)
    child = wait(venv.python, "", ask)
    venv.install(newer_wheel({"takeover.py": NEEDS_NEWER_FINDER}))
    result = child.finish()
    assert answer(result) == PLAIN
    assert result.err == ""


def test_upgraded_to_a_notice_that_needs_the_newer_finder(
    wheel: Path,
    newer_wheel: Callable[..., Path],
    make_venv: Any,
    wait: Callable[..., Any],
    ask: str,
) -> None:
    venv = make_venv()
    venv.install(wheel)
    child = wait(venv.python, "", ask)
    venv.install(newer_wheel({"notice.py": NEEDS_NEWER_FINDER}))
    result = child.finish()
    assert answer(result)["by"] == "stand-in"
    lines = result.err.splitlines()
    assert lines
    assert all(line.startswith("hadamard_finder: ImportError: ") for line in lines), result.err


def test_uninstalled(
    pip: Any, wheel: Path, make_venv: Any, wait: Callable[..., Any], ask: str
) -> None:
    venv = make_venv()
    pip.install(venv.python, wheel)
    probe = NOTHING.replace("assert not", "assert")
    child = wait(venv.python, probe, NOTHING + ask)
    pip.uninstall(venv.python)
    result = child.finish()
    assert answer(result) == PLAIN
    assert result.err == ""


def test_uninstalled_but_for_byte_code(
    pip: Any, wheel: Path, make_venv: Any, wait: Callable[..., Any], ask: str
) -> None:
    """pip leaves what `python -O` wrote, and so the stand-in's folder: a namespace package."""
    venv = make_venv()
    pip.install(venv.python, wheel)
    venv.run(ask, flags=["-O"]).check()
    child = wait(venv.python, "", NOTHING + ask)
    pip.uninstall(venv.python)
    left = venv.site_packages / "hadamard_finder" / "standin" / "fast_hadamard_transform"
    assert left.is_dir()
    result = child.finish()
    assert answer(result) == PLAIN
    assert result.err == ""


def test_uninstalled_beside_a_real_package(
    pip: Any, wheel: Path, make_venv: Any, wait: Callable[..., Any], ask: str
) -> None:
    venv = make_venv()
    build_real(venv.site_packages)
    pip.install(venv.python, wheel)
    child = wait(venv.python, "", ask)
    pip.uninstall(venv.python)
    result = child.finish()
    assert (answer(result)["by"], result.err) == ("real", "")


def test_uninstalled_while_the_stand_in_is_in_use(
    wheel: Path, make_venv: Any, wait: Callable[..., Any]
) -> None:
    venv = make_venv()
    venv.install(wheel)
    use = "from fast_hadamard_transform import fast_hadamard_transform_interface as interface\n"
    again = (
        "import fast_hadamard_transform as package, fast_hadamard_transform_cuda, json\n"
        "assert package.fast_hadamard_transform_interface is interface\n"
        "print(json.dumps(package.hadamard_transform is interface.hadamard_transform))\n"
    )
    child = wait(venv.python, use, again)
    shutil.rmtree(venv.site_packages / "hadamard_finder")
    assert answer(child.finish()) is True


@pytest.mark.parametrize("rest", ["package", "package and its start-up file"])
def test_removed_between_the_search_and_the_load(
    rest: str, wheel: Path, make_venv: Any, wait: Callable[..., Any]
) -> None:
    venv = make_venv()
    venv.install(wheel)
    first = (
        "from importlib.util import find_spec, module_from_spec\n"
        "spec = find_spec('fast_hadamard_transform')\n"
        "module = module_from_spec(spec)\n"
    )
    second = (
        "import json\n"
        "try:\n    spec.loader.exec_module(module)\n"
        "except Exception as error:\n    print(json.dumps([type(error).__name__, str(error)]))\n"
    )
    child = wait(venv.python, first, second)
    shutil.rmtree(venv.site_packages / "hadamard_finder")
    if rest != "package":
        (venv.site_packages / "hadamard_finder.pth").unlink()
    assert answer(child.finish()) == [PLAIN["error"], PLAIN["text"]]
