"""Our own files go, or change, under a running process."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from faults import build_real
from support import REPO, STUB_TORCH, TESTS, run_python

BEGIN = """
import importlib.util, os, shutil, sys
import hadamard_finder.finder
hadamard_finder.finder.start()
import probe
log = probe.listen()
HOME = os.path.dirname(hadamard_finder.__file__)
# What follows deletes HOME: it must be the copy, whatever else is on the path.
assert HOME == os.path.join(os.environ["COPY"], "hadamard_finder"), HOME
"""
FACES = {
    "all": "shutil.rmtree(HOME)",
    "all-once-read": "hadamard_finder.finder._read_lookup(); shutil.rmtree(HOME)",
    "leftover-folders": "[os.remove(os.path.join(folder, file)) "
    "for folder, _, files in os.walk(HOME) for file in files]",
    "standin": "shutil.rmtree(os.path.join(HOME, 'standin'))",
    "takeover": "os.remove(os.path.join(HOME, 'takeover.py'))",
    "takeover-empty": "open(os.path.join(HOME, 'takeover.py'), 'w').close()",
    "transform": "shutil.rmtree(os.path.join(HOME, 'transform'))",
}


def gone(tmp_path: Path, site, code: str):
    copy = tmp_path / "copy"
    shutil.copytree(
        REPO / "hadamard_finder",
        copy / "hadamard_finder",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    return run_python(
        BEGIN + code,
        flags=("-S",),
        path=[copy, site.folder, STUB_TORCH, TESTS],
        env={"PYTHONDONTWRITEBYTECODE": "1", "COPY": str(copy)},
        cwd=copy,  # `-c` puts the working directory first on the path
    )


@pytest.mark.parametrize("face", FACES)
def test_uninstalled_the_name_is_not_found(tmp_path: Path, site, face: str):
    gone(
        tmp_path,
        site,
        f"""
{FACES[face]}
importlib.invalidate_caches()
for name in (probe.PACKAGE, probe.EXTENSION):
    # Where the stand-in's files are there still, the load finds out.
    assert {"takeover" in face or face == "transform"} or importlib.util.find_spec(name) is None
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        assert error.name == name, error
    else:
        raise AssertionError
assert probe.family() == {{}} and not log
""",
    ).check()


@pytest.mark.parametrize("face", FACES)
def test_uninstalled_a_working_package_works(tmp_path: Path, site, face: str):
    build_real(site.folder)
    gone(
        tmp_path,
        site,
        f"""
{FACES[face]}
importlib.invalidate_caches()
import fast_hadamard_transform
assert fast_hadamard_transform.hadamard_transform(1, 2) == ("real", 1, 2)
assert type(fast_hadamard_transform.__loader__).__name__ == "SourceFileLoader"
assert fast_hadamard_transform.__spec__.loader is fast_hadamard_transform.__loader__
""",
    ).check()


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("how", ["source", "open"])
def test_uninstalled_a_broken_package_raises_its_own_error(tmp_path: Path, site, face, how: str):
    if how == "source":
        build_real(site.folder, interface="raise OSError('the original')")
    else:
        build_real(site.folder, extension=None)
        (site.folder / "fast_hadamard_transform_cuda.so").write_bytes(b"the original")
    gone(
        tmp_path,
        site,
        f"""
{FACES[face]}
importlib.invalidate_caches()
try:
    import fast_hadamard_transform
except (OSError, ImportError) as error:
    assert "the original" in str(error) or "file too short" in str(error), repr(error)
else:
    raise AssertionError
assert probe.family() == {{}}, probe.family()
assert not log
""",
    ).check()


def test_a_stand_in_in_use_goes_on(tmp_path: Path, site):
    gone(
        tmp_path,
        site,
        """
import fast_hadamard_transform as package
function = package.hadamard_transform
shutil.rmtree(HOME)
importlib.invalidate_caches()
import fast_hadamard_transform
assert fast_hadamard_transform is package and package.hadamard_transform is function
try:
    importlib.reload(package)
except ModuleNotFoundError:
    pass
else:
    raise AssertionError
assert package.hadamard_transform is function
""",
    ).check()
