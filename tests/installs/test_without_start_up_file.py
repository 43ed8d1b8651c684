"""Where no start-up file can run: ``activate`` does its work."""

from __future__ import annotations

import shutil
import sys
import zipapp
import zipfile
from pathlib import Path
from typing import Any

import pytest
from support import STUB_TORCH, run

ACTIVATE = "import hadamard_finder\nhadamard_finder.activate()\n"


@pytest.fixture
def target(pip: Any, wheel: Path, make_venv: Any, tmp_path: Path) -> tuple[Any, Path]:
    """An empty environment, and a folder that `pip install --target` filled."""
    venv = make_venv()
    folder = tmp_path / "target"
    pip.install(venv.python, "--target", folder, wheel)
    return venv, folder


def test_target_folder(target: tuple[Any, Path], ask: str) -> None:
    venv, folder = target
    assert (folder / "hadamard_finder.pth").exists()
    idle = venv.run("", path=[folder]).check()
    assert idle.err == ""
    without = venv.run(ask, path=[folder]).json()
    assert without["text"] == "No module named 'fast_hadamard_transform'"
    assert without["finders"] == 0
    imported = venv.run(f"import hadamard_finder\n{ask}", path=[folder]).json()
    assert (imported["error"], imported["finders"]) == ("ModuleNotFoundError", 0)
    served = venv.run(ACTIVATE + ask, path=[folder]).json()
    assert (served["by"], served["finders"]) == ("stand-in", 1)
    assert served["file"].startswith(str(folder))


def test_target_folder_made_a_site_directory(target: tuple[Any, Path], ask: str) -> None:
    venv, folder = target
    served = venv.run(f"import site\nsite.addsitedir({str(folder)!r})\n{ask}").json()
    assert (served["by"], served["finders"]) == ("stand-in", 1)


def test_without_site(wheel: Path, make_venv: Any, ask: str) -> None:
    venv = make_venv(torch="none")
    venv.install(wheel)
    path = [venv.site_packages, STUB_TORCH]
    without = venv.run(ask, flags=["-S"], path=path).json()
    assert (without["error"], without["finders"]) == ("ModuleNotFoundError", 0)
    served = venv.run(ACTIVATE + ask, flags=["-S"], path=path).json()
    assert (served["by"], served["finders"]) == ("stand-in", 1)


MAIN = """
import importlib, inspect, json, os, pickle, sys
import hadamard_finder

os.chdir(os.path.dirname(sys.executable))  # the archive was named by a relative path
hadamard_finder.activate()
import fast_hadamard_transform as package
import fast_hadamard_transform_cuda as extension
from fast_hadamard_transform import fast_hadamard_transform_interface as interface

function = package.hadamard_transform
assert importlib.reload(package) is package
print(json.dumps({
    "marks": [part.__hadamard_finder__ for part in (package, interface, extension)],
    "files": [part.__file__ for part in (package, interface, extension)],
    "loader": type(package.__spec__.loader).__name__,
    "source": inspect.getsource(package),
    "pickled": pickle.loads(pickle.dumps(function)) is interface.hadamard_transform,
    "found": importlib.util.find_spec("fast_hadamard_transform").origin,
}))
"""


@pytest.mark.parametrize("compressed", [False, True])
def test_zipapp(compressed: bool, wheel: Path, make_venv: Any, tmp_path: Path) -> None:
    source = tmp_path / "source"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(source)
    (source / "__main__.py").write_text(MAIN)
    zipapp.create_archive(source, tmp_path / "app.pyz", compressed=compressed)
    shutil.rmtree(source)
    venv = make_venv()
    result = run([venv.python, "app.pyz"], cwd=tmp_path)
    answer = result.json()
    standin = tmp_path / "app.pyz" / "hadamard_finder" / "standin"
    package = standin / "fast_hadamard_transform"
    assert answer["marks"] == [True, True, True]
    assert answer["files"] == [
        str(package / "__init__.py"),
        str(package / "fast_hadamard_transform_interface.py"),
        str(standin / "fast_hadamard_transform_cuda.py"),
    ]
    assert answer["found"] == answer["files"][0]
    assert answer["loader"] == "zipimporter"
    assert answer["source"].startswith('"""Stand-in for')
    assert answer["pickled"] is True
    assert result.err.count("\n") == 1


def test_the_wheel_itself_on_the_path(wheel: Path, make_venv: Any, ask: str) -> None:
    served = make_venv().run(ACTIVATE + ask, path=[wheel]).json()
    assert (served["by"], served["finders"]) == ("stand-in", 1)
    assert served["file"].startswith(str(wheel))


@pytest.mark.skipif(sys.platform == "win32", reason="needs links")
def test_a_linked_folder(wheel: Path, make_venv: Any, ask: str) -> None:
    """As installers lay it out that keep one copy for many environments."""
    venv = make_venv()
    other = make_venv("other", torch="none")
    other.install(wheel)
    for name in ("hadamard_finder", "hadamard_finder.pth"):
        (venv.site_packages / name).symlink_to(other.site_packages / name)
    served = venv.run(ask).json()
    assert (served["by"], served["finders"]) == ("stand-in", 1)
