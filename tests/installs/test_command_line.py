"""``python -m hadamard_finder status`` in installs; what it says in detail is tested elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support import REPO, run


def status(venv: Any, code: int = 0, **options: Any) -> Any:
    result = run([venv.python, "-m", "hadamard_finder", "status", "--json"], **options)
    assert result.code == code, result.err
    return json.loads(result.out)


def start_up_file(found: Any, folder: Path) -> Any:
    (file,) = (f for f in found["startup"] if f["path"] == str(folder / "hadamard_finder.pth"))
    return file


def test_normal_install(pip: Any, wheel: Path, make_venv: Any) -> None:
    venv = make_venv(torch="real")
    pip.install(venv.python, wheel)
    found = status(venv)
    assert (found["source"], found["active"]) == ("stand-in", True)
    assert found["location"].startswith(str(venv.site_packages))
    file = start_up_file(found, venv.site_packages)
    assert (file["ran"], file["expected"]) == (True, True)


def test_editable_install(pip: Any, make_venv: Any) -> None:
    venv = make_venv(torch="real")
    pip.install(venv.python, "--editable", REPO)
    found = status(venv)
    assert (found["source"], found["active"]) == ("stand-in", True)
    assert found["location"].startswith(str(REPO))
    file = start_up_file(found, venv.site_packages)
    assert (file["ran"], file["expected"]) == (True, True)


def test_target_folder(pip: Any, wheel: Path, make_venv: Any, tmp_path: Path) -> None:
    venv = make_venv(torch="real")
    folder = tmp_path / "target"
    pip.install(venv.python, "--target", folder, wheel)
    found = status(venv, code=1, path=[folder])
    assert (found["source"], found["active"], found["works"]) == ("none", False, False)
    file = start_up_file(found, folder)
    assert (file["ran"], file["expected"]) == (False, True)
    assert "--target" in file["why"]
