"""The start-up files: where they are, whether they are ours, and why Python does not run them."""

from __future__ import annotations

import os
import site
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import REPO

from hadamard_finder.report import startup_files

PTH = startup_files.SHIPPED["hadamard_finder.pth"]


@pytest.mark.parametrize("name", startup_files.SHIPPED)
def test_what_counts_as_ours_is_what_the_wheel_brings(name: str) -> None:
    shipped = REPO / "hadamard_finder" / "startup" / name
    assert startup_files.SHIPPED[name] == shipped.read_text().strip()


def test_both_files_of_an_install(ask: Callable[..., Any], small_venv: Callable[..., Any]) -> None:
    venv = small_venv()
    answer = ask(python=venv.python, torch=None)
    assert (answer.code, answer.status["source"], answer.codes) == (0, "stand-in", [])
    pth, start = answer.status["startup"]
    new = sys.version_info >= (3, 15)
    assert pth["path"] == str(venv.site_packages / "hadamard_finder.pth")
    assert start["path"] == str(venv.site_packages / "hadamard_finder.start")
    assert (pth["content"], start["content"]) == (PTH, "hadamard_finder.finder:start")
    assert pth["expected"] is start["expected"] is True
    assert (pth["ran"], start["ran"]) == (not new, new)
    assert (start if not new else pth)["why"] != ""


def test_no_file(ask: Callable[..., Any], small_venv: Callable[..., Any]) -> None:
    venv = small_venv()
    for name in startup_files.SHIPPED:
        (venv.site_packages / name).unlink()
    answer = ask(python=venv.python, torch=None)
    assert (answer.code, answer.status["source"]) == (1, "none")
    assert answer.status["startup"] == []
    assert (answer.status["active"], answer.codes) == (False, ["startup-missing"])
    found = answer.finding("startup-missing")
    assert found["step"] == (
        "Install hadamard-finder again from where it came (pip's --force-reinstall --no-deps), or "
        "call hadamard_finder.activate() at the top of your program."
    )


@pytest.mark.skipif(sys.version_info >= (3, 15), reason="the .start file takes over there")
def test_an_altered_file(ask: Callable[..., Any], small_venv: Callable[..., Any]) -> None:
    venv = small_venv()
    (venv.site_packages / "hadamard_finder.pth").write_text("# import hadamard_finder.finder\n")
    answer = ask(python=venv.python, torch=None)
    assert (answer.code, answer.codes) == (1, ["startup-altered"])
    assert answer.status["startup"][0]["expected"] is False
    (venv.site_packages / "hadamard_finder.pth").write_text(f"{PTH}  # ours\n")
    answer = ask(python=venv.python, torch=None)
    assert (answer.code, answer.codes) == (0, ["startup-altered"])
    assert answer.finding("startup-altered")["severity"] == "note"


@pytest.mark.skipif(sys.version_info >= (3, 15), reason="the .start file takes over there")
def test_a_file_without_effect(ask: Callable[..., Any], small_venv: Callable[..., Any]) -> None:
    venv = small_venv()
    # After our file in the alphabet, so that it undoes what that did.
    (venv.site_packages / "zz.pth").write_text("import sys; sys.meta_path.pop(0)\n")
    answer = ask(python=venv.python, torch=None)
    assert (answer.code, answer.codes) == (1, ["startup-without-effect"])


def test_a_target_folder_on_pythonpath(
    ask: Callable[..., Any], small_venv: Callable[..., Any]
) -> None:
    target, bare = small_venv(), small_venv()
    for entry in bare.site_packages.glob("hadamard_finder*"):
        if entry.is_file():
            entry.unlink()
    answer = ask(python=bare.python, torch=None, path=[target.site_packages])
    outside = [s for s in answer.status["startup"] if s["path"].startswith(str(target.folder))]
    assert [item["ran"] for item in outside] == [False, False]
    assert "no site directory" in outside[0]["why"]
    assert (answer.code, answer.codes) == (1, ["startup-not-run"])
    assert answer.finding("startup-not-run")["step"].startswith("Call hadamard_finder.activate()")


def test_python_without_site(ask: Callable[..., Any], small_venv: Callable[..., Any]) -> None:
    venv = small_venv()
    stub = REPO / "tests" / "stub_torch"
    answer = ask(python=venv.python, flags=["-S"], torch=None, path=[venv.site_packages, stub])
    assert (answer.code, answer.codes) == (1, ["startup-no-site"])
    assert {item["ran"] for item in answer.status["startup"]} == {False}
    assert answer.status["startup"][0]["why"] == "Python was started with -S"


def test_isolated_python_runs_the_file(
    ask: Callable[..., Any], small_venv: Callable[..., Any]
) -> None:
    venv = small_venv()
    answer = ask(python=venv.python, flags=["-I"], torch=None)
    assert (answer.code, answer.status["source"], answer.status["active"]) == (0, "stand-in", True)


def test_torch_is_missing(ask: Callable[..., Any], small_venv: Callable[..., Any]) -> None:
    venv = small_venv(torch="none")
    answer = ask(python=venv.python, torch=None)
    assert (answer.code, answer.status["source"]) == (1, "none")
    assert answer.status["torch"]["installed"] is False
    assert answer.codes == ["torch-missing"]
    assert answer.finding("torch-missing")["command"] == "python -m pip install torch"


def test_a_hidden_file_is_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # Only macOS has the flag.
    file = tmp_path / "hadamard_finder.pth"
    file.write_text(f"{PTH}\n")
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(tmp_path)])
    assert [item.why for item in startup_files.read() if item.path == str(file)] == [""]
    hidden = SimpleNamespace(st_flags=stat.UF_HIDDEN, st_mode=file.stat().st_mode)
    monkeypatch.setattr(Path, "lstat", lambda _: hidden)
    (found,) = [item for item in startup_files.read() if item.path == str(file)]
    assert found.ran is False
    assert "hidden" in found.why


def test_an_unreadable_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "hadamard_finder.pth"
    os.symlink(tmp_path / "nowhere", file)
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(tmp_path)])
    (found,) = [item for item in startup_files.read() if item.path == str(file)]
    assert (found.content, found.expected, found.ran) == (None, False, False)
    assert found.why == "it cannot be read"
