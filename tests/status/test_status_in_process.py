"""``hadamard_finder.status()`` looks at the process that calls it, and changes nothing there."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults import FAULTS, build_real
from support import REPO, STUB_TORCH, Result, other_pythons, run_python

REPORT = """
import dataclasses, json
print(json.dumps(dataclasses.asdict(hadamard_finder.status())))
"""


def report(code: str, *path: Path, env: dict[str, str] | None = None) -> Result:
    lines = f"import sys, types\nimport hadamard_finder\n{code}\n{REPORT}"
    return run_python(lines, path=[*path, STUB_TORCH], env=env)


def test_it_imports_neither_torch_nor_the_package() -> None:
    code = """
    import sys
    import hadamard_finder
    before = set(sys.modules)
    found = hadamard_finder.status()
    assert not {"torch", "fast_hadamard_transform"} & set(sys.modules)
    assert (found.source, found.works, found.imported) == ("stand-in", True, False)
    assert found.reason == "fast_hadamard_transform is not installed"
    assert found.scope == "this process"
    """
    run_python(code, path=[STUB_TORCH]).check()


def test_after_the_import_it_says_what_is_loaded() -> None:
    found = report("import fast_hadamard_transform").json()
    assert (found["source"], found["imported"]) == ("stand-in", True)
    assert found["location"].endswith("__init__.py")


def test_a_working_package_before_and_after_the_import(tmp_path: Path) -> None:
    build_real(tmp_path)
    for code, imported in (("", False), ("import fast_hadamard_transform", True)):
        found = report(code, tmp_path).json()
        assert (found["source"], found["works"], found["imported"]) == ("real", True, imported)
        assert found["real"]["loads"] is True


def test_a_broken_package_is_predicted_to_become_the_standin(tmp_path: Path) -> None:
    FAULTS["no-interface"].build(tmp_path)
    found = report("", tmp_path).json()
    assert (found["source"], found["imported"]) == ("stand-in", False)
    assert found["reason"].startswith("ModuleNotFoundError: No module named")
    assert [item["code"] for item in found["findings"]] == ["package-incomplete"]


def test_a_package_that_would_kill_this_process(tmp_path: Path) -> None:
    build_real(tmp_path, init="import os; os._exit(9)\n")
    found = report("", tmp_path).json()
    assert (found["source"], found["works"]) == ("none", False)
    assert found["real"]["signal"] == "exit status 9"
    found = report("", tmp_path, env={"HADAMARD_FINDER": "force"}).json()
    assert (found["source"], found["works"]) == ("stand-in", True)


def test_a_torch_that_fails_leaves_nothing_to_serve(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise OSError('libtorch_cpu.so: cut')\n")
    for switch in ("auto", "force"):
        found = report("", tmp_path, env={"HADAMARD_FINDER": switch}).json()
        assert (found["source"], found["works"]) == ("none", False)
        assert found["torch"]["error"] == "OSError: libtorch_cpu.so: cut"


def test_a_finder_that_was_deactivated() -> None:
    found = report("hadamard_finder.deactivate()").json()
    assert (found["active"], found["source"], found["works"]) == (False, "none", False)
    assert [item["code"] for item in found["findings"]] == ["startup-without-effect"]


def test_a_stub_that_another_project_made_in_memory() -> None:
    code = """
shim = types.ModuleType("fast_hadamard_transform")
shim.hadamard_transform = lambda x, scale=1.0: x
sys.modules["fast_hadamard_transform"] = shim
"""
    found = report(code).json()
    assert (found["source"], found["works"], found["location"]) == ("foreign", True, None)
    (finding,) = found["findings"]
    assert (finding["code"], finding["severity"]) == ("foreign", "note")
    assert finding["command"] == "hadamard_finder.status(check=True)"


def test_a_block_in_this_process() -> None:
    found = report("sys.modules['fast_hadamard_transform'] = None").json()
    assert (found["source"], found["works"]) == ("blocked", False)
    assert [item["code"] for item in found["findings"]] == ["blocked"]


def test_folders_that_this_process_added_to_the_path(tmp_path: Path) -> None:
    build_real(tmp_path)
    found = report(f"sys.path.insert(0, {str(tmp_path)!r})").json()
    assert (found["source"], found["real"]["loads"]) == ("real", True)


def test_what_the_sweep_did_is_reported(tmp_path: Path) -> None:
    (tmp_path / "early.py").write_text(
        "try:\n    from fast_hadamard_transform import hadamard_transform\n"
        "except ImportError:\n    hadamard_transform = None\n"
    )
    code = "hadamard_finder.deactivate()\nimport early\nhadamard_finder.activate()"
    found = report(code, tmp_path).json()
    assert [(item["module"], item["name"]) for item in found["swept"]] == [
        ("early", "hadamard_transform")
    ]


def test_what_the_sweep_left_is_reported_with_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "early.py").write_text(
        "try:\n    import fast_hadamard_transform as fht\nexcept ImportError:\n    fht = None\n"
    )
    code = "hadamard_finder.deactivate()\nimport early\nhadamard_finder.activate()"
    found = report(code, tmp_path).json()
    (left,) = found["leftovers"]
    assert (left["module"], left["name"], left["line"]) == ("early", "fht", 2)
    (finding,) = found["findings"]
    assert finding["code"] == "leftovers"
    assert "sweep(everything=True)" in finding["step"]


def test_where_no_child_can_be_started() -> None:
    found = report("sys.executable = '/nowhere/python'").json()
    assert (found["source"], found["works"]) == ("none", False)
    assert found["real"]["loads"] is None
    assert "no child process" in found["reason"]
    found = report("import fast_hadamard_transform; sys.executable = ''").json()
    assert (found["source"], found["works"]) == ("stand-in", True)


@pytest.mark.parametrize("python", other_pythons(), ids=lambda path: path.parent.parent.name)
def test_other_pythons_without_anything_installed(python: Path, tmp_path: Path) -> None:
    FAULTS["no-interface"].build(tmp_path)
    code = """
    import hadamard_finder
    hadamard_finder.start()
    found = hadamard_finder.status()
    assert (found.source, found.works, found.active) == ("stand-in", True, True), found
    assert [finding.code for finding in found.findings] == ["package-incomplete"], found
    assert str(found)
    """
    run_python(code, python=python, path=[tmp_path, STUB_TORCH, REPO]).check()


@pytest.mark.parametrize("imported", ["", "import fast_hadamard_transform"])
def test_the_text_of_a_status_is_the_one_of_the_command_line(imported: str) -> None:
    code = f"import hadamard_finder\n{imported}\nprint(hadamard_finder.status())"
    lines = run_python(code, path=[STUB_TORCH]).check().out.splitlines()
    assert lines[0] == "import        stand-in (fast_hadamard_transform in this process)"
    assert lines[-1] == "next          Nothing has to be done: the import works."
