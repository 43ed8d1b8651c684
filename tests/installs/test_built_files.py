"""What the wheel and the sdist hold."""

from __future__ import annotations

import base64
import csv
import email
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support import REPO


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def files(wheel: Path) -> dict[str, bytes]:
    return contents(wheel)


def metadata_folder(files: dict[str, bytes]) -> str:
    (record,) = (name for name in files if name.endswith("/RECORD"))
    return record.partition("/")[0]


def test_nothing_but_the_package_and_its_start_up_files_lies_at_the_root(
    files: dict[str, bytes],
) -> None:
    top = {name.partition("/")[0] for name in files}
    folder = metadata_folder(files)
    assert top == {"hadamard_finder", "hadamard_finder.pth", "hadamard_finder.start", folder}


def test_the_wheel_holds_every_file_of_the_package_and_no_other(files: dict[str, bytes]) -> None:
    package = REPO / "hadamard_finder"
    source = {
        file.relative_to(REPO).as_posix(): file.read_bytes()
        for file in package.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    # The start-up files move: at the root they run, in the package they would be dead weight.
    expected = {name.replace("hadamard_finder/startup/", ""): data for name, data in source.items()}
    folder = metadata_folder(files)
    assert {n: d for n, d in files.items() if not n.startswith(f"{folder}/")} == expected
    assert {
        "hadamard_finder/py.typed",
        "hadamard_finder/standin/fast_hadamard_transform_cuda.py",
        "hadamard_finder/standin/fast_hadamard_transform/__init__.py",
        "hadamard_finder/standin/fast_hadamard_transform/fast_hadamard_transform_interface.py",
    } <= files.keys()


def test_record_lists_every_file_with_its_hash(files: dict[str, bytes]) -> None:
    name = f"{metadata_folder(files)}/RECORD"
    rows = {row[0]: row[1] for row in csv.reader(io.StringIO(files[name].decode()))}

    def digest(data: bytes) -> str:
        return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()

    expected = {key: f"sha256={digest(data)}" for key, data in files.items() if key != name}
    assert rows == {**expected, name: ""}


def test_metadata(files: dict[str, bytes]) -> None:
    folder = metadata_folder(files)
    metadata = email.message_from_bytes(files[f"{folder}/METADATA"])
    assert metadata["Name"] == "hadamard-finder"
    # Tools from before 2026 refuse newer metadata, which would say nothing more here.
    assert metadata["Metadata-Version"] == "2.4"
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert files[f"{folder}/licenses/LICENSE"] == (REPO / "LICENSE").read_bytes()
    needed = [text for text in metadata.get_all("Requires-Dist") or () if "extra ==" not in text]
    names = {text.split(">")[0].strip() for text in needed}
    assert names == {"torch", "importlib-metadata"}
    assert b"Root-Is-Purelib: true" in files[f"{folder}/WHEEL"]


def test_the_version_is_the_one_in_the_source(files: dict[str, bytes]) -> None:
    namespace: dict[str, object] = {}
    exec(files["hadamard_finder/__init__.py"], namespace)
    version = namespace["__version__"]
    assert metadata_folder(files) == f"hadamard_finder-{version}.dist-info"
    assert f"## [{version}]" in (REPO / "CHANGELOG.md").read_text()


def test_both_start_up_files_name_the_same_callable(files: dict[str, bytes]) -> None:
    module, _, function = files["hadamard_finder.start"].decode().strip().partition(":")
    assert files["hadamard_finder.pth"].decode() == f"import {module}; {module}.{function}()\n"
    # Frozen for good: start-up files of any version call it by this name.
    assert (module, function) == ("hadamard_finder.finder", "start")


def test_the_wheel_built_from_the_sdist_is_the_same(
    sdist: Path, build_wheel: Callable[[Path], Path], files: dict[str, bytes], tmp_path: Path
) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path)
    (source,) = tmp_path.iterdir()
    assert contents(build_wheel(source)) == files


def test_the_sdist_holds_the_tests_and_what_they_read(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tests = {
        file.relative_to(REPO).as_posix()
        for file in (REPO / "tests").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts and not file.name.startswith(".")
    }
    assert tests <= names
    assert {"pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE"} <= names
    assert not any("__pycache__" in name for name in names)
