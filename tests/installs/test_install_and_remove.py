"""Installing, upgrading and removing with real installers in real environments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults import build_real
from support import REPO, other_pythons

START_UP_FILES = {"hadamard_finder.pth", "hadamard_finder.start"}


def starts_silently(venv: Any) -> None:
    result = venv.run("").check()
    assert (result.out, result.err) == ("", "")


def test_install_and_uninstall(
    installer: Any, wheel: Path, make_venv: Any, ask: str, listing: Callable[[Path], set[str]]
) -> None:
    venv = make_venv()
    before = listing(venv.site_packages)
    installer.install(venv.python, wheel)
    assert listing(venv.site_packages) >= START_UP_FILES
    starts_silently(venv)
    served = venv.run(ask).json()
    assert (served["by"], served["finders"]) == ("stand-in", 1)
    assert served["file"].startswith(str(venv.site_packages))

    installer.uninstall(venv.python)
    assert listing(venv.site_packages) == before
    assert not (venv.site_packages / "hadamard_finder").exists()
    starts_silently(venv)
    gone = venv.run(ask).json()
    assert (gone["error"], gone["finders"]) == ("ModuleNotFoundError", 0)
    assert gone["text"] == "No module named 'fast_hadamard_transform'"


def test_editable_install_and_uninstall(
    installer: Any, make_venv: Any, ask: str, listing: Callable[[Path], set[str]]
) -> None:
    venv = make_venv()
    before = listing(venv.site_packages)
    installer.install(venv.python, "--editable", REPO)
    files = listing(venv.site_packages)
    assert files >= START_UP_FILES
    assert not any(name.startswith("hadamard_finder/") for name in files)
    starts_silently(venv)
    served = venv.run(ask).json()
    assert (served["by"], served["finders"]) == ("stand-in", 1)
    assert served["file"].startswith(str(REPO / "hadamard_finder" / "standin"))

    installer.uninstall(venv.python)
    assert listing(venv.site_packages) == before
    starts_silently(venv)


def test_editable_and_normal_installs_replace_each_other(
    pip: Any, wheel: Path, make_venv: Any, ask: str, listing: Callable[[Path], set[str]]
) -> None:
    venv = make_venv()
    pip.install(venv.python, wheel)
    normal = listing(venv.site_packages)
    pip.install(venv.python, "--editable", REPO)
    assert venv.run(ask).json()["file"].startswith(str(REPO))
    pip.install(venv.python, "--force-reinstall", wheel)
    assert venv.run(ask).json()["file"].startswith(str(venv.site_packages))
    assert {name for name in listing(venv.site_packages) if "__pycache__" not in name} == {
        name for name in normal if "__pycache__" not in name
    }


def test_upgrade(
    installer: Any, wheel: Path, newer_wheel: Callable[..., Path], make_venv: Any, ask: str
) -> None:
    venv = make_venv()
    installer.install(venv.python, wheel)
    assert venv.run(ask).json()["by"] == "stand-in"
    installer.install(venv.python, "--upgrade", newer_wheel({}))
    code = "import hadamard_finder; print(hadamard_finder.__version__)"
    assert venv.run(code).check().out == "999.0\n"
    starts_silently(venv)
    served = venv.run(ask).json()
    assert (served["by"], served["finders"]) == ("stand-in", 1)


def test_byte_code_that_pip_does_not_know_of_does_no_harm(
    pip: Any, wheel: Path, make_venv: Any, ask: str
) -> None:
    """pip removes the .pyc files of a plain Python, not those of `python -O`."""
    venv = make_venv()
    pip.install(venv.python, wheel)
    for flag in ("-O", "-OO"):
        assert venv.run(ask, flags=[flag]).json()["by"] == "stand-in"
    pip.uninstall(venv.python)
    assert not any((venv.site_packages / name).exists() for name in START_UP_FILES)
    starts_silently(venv)
    gone = venv.run(ask, flags=["-O"]).json()
    assert (gone["error"], gone["finders"]) == ("ModuleNotFoundError", 0)


def test_the_real_package_may_come_and_go_beside_us(
    pip: Any, wheel: Path, make_venv: Any, ask: str
) -> None:
    venv = make_venv()
    build_real(venv.site_packages)
    pip.install(venv.python, wheel)
    result = venv.run(ask)
    assert (result.json()["by"], result.err) == ("real", "")
    pip.uninstall(venv.python)
    result = venv.run(ask)
    assert (result.json()["by"], result.err) == ("real", "")


def test_every_python_of_this_machine(wheel: Path, make_venv: Any, ask: str) -> None:
    pythons = other_pythons()
    if not pythons:
        pytest.skip("there is no other CPython from 3.10 on")
    for python in pythons:
        venv = make_venv(python=python)
        venv.install(wheel)
        starts_silently(venv)
        served = venv.run(ask).json()
        assert (served["by"], served["finders"]) == ("stand-in", 1), python
