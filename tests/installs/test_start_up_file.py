"""The start-up file under every way to start Python, run twice, and without what it names."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from support import STUB_TORCH, run, run_python

WARNING = "fast_hadamard_transform is served by hadamard_finder"

FLAGS = [
    "",
    "-I",
    "-E",
    "-s",
    "-B",
    "-O",
    "-OO",
    "-bb",
    "-u",
    "-W error -X dev",
    "-X utf8",
    pytest.param(
        "-P", marks=pytest.mark.skipif(sys.version_info < (3, 11), reason="new in Python 3.11")
    ),
    pytest.param(
        "-X frozen_modules=off",
        marks=pytest.mark.skipif(sys.version_info < (3, 11), reason="new in Python 3.11"),
    ),
]


@pytest.fixture
def venv(wheel: Path, make_venv: Any) -> Any:
    made = make_venv()
    made.install(wheel)
    return made


@pytest.mark.parametrize("flags", FLAGS)
def test_silent_and_served_under(flags: str, venv: Any, ask: str) -> None:
    words = flags.split()
    idle = venv.run("", flags=words).check()
    assert (idle.out, idle.err) == ("", "")
    result = venv.run(ask, flags=words)
    served = result.json()
    assert (served["by"], served["finders"]) == ("stand-in", 1)
    assert served["optimize"] == flags.count("O")
    assert result.err.startswith(WARNING)
    assert result.err.count("\n") == 1


def test_a_script_a_module_and_standard_input_are_served(
    venv: Any, ask: str, tmp_path: Path
) -> None:
    (tmp_path / "script.py").write_text(ask)
    for words in (["script.py"], ["-m", "script"], ["-I", str(tmp_path / "script.py")]):
        served = run([venv.python, *words], cwd=tmp_path).json()
        assert (served["by"], served["finders"]) == ("stand-in", 1), words


@pytest.mark.parametrize("flag", ["-E", "-I"])
def test_the_switch_is_ours_not_pythons(flag: str, venv: Any, ask: str) -> None:
    answer = venv.run(ask, flags=[flag], env={"HADAMARD_FINDER": "off"}).json()
    assert (answer["error"], answer["finders"]) == ("ModuleNotFoundError", 1)


def test_without_site_nothing_runs_and_site_may_come_later(venv: Any, ask: str) -> None:
    bare = run_python(ask, python=venv.python, flags=["-S"]).json()
    assert (bare["error"], bare["finders"]) == ("ModuleNotFoundError", 0)
    late = run_python(f"import site\nsite.main()\n{ask}", python=venv.python, flags=["-S"]).json()
    assert (late["by"], late["finders"]) == ("stand-in", 1)


def test_run_again(venv: Any, ask: str) -> None:
    again = f"import site\nsite.addsitedir({str(venv.site_packages)!r})\n{ask}"
    served = venv.run(again).json()
    assert (served["by"], served["finders"]) == ("stand-in", 1)


def test_run_again_after_the_module_was_dropped(venv: Any, ask: str) -> None:
    """As a test runner does that restores sys.modules: a new class, still one finder."""
    again = (
        "import site, sys\n"
        "for name in [name for name in sys.modules if name.startswith('hadamard_finder')]:\n"
        "    del sys.modules[name]\n"
        f"site.addsitedir({str(venv.site_packages)!r})\n{ask}"
    )
    result = venv.run(again)
    served = result.json()
    assert (served["by"], served["finders"]) == ("stand-in", 1)


def test_two_site_directories(venv: Any, wheel: Path, make_venv: Any, ask: str) -> None:
    other = make_venv("other", torch="none")
    other.install(wheel)
    line = f"import site; site.addsitedir({str(other.site_packages)!r})\n"
    for name in ("aa_first.pth", "zz_last.pth"):
        chain = venv.site_packages / name
        chain.write_text(line)
        result = venv.run(ask)
        served = result.json()
        assert (served["by"], served["finders"]) == ("stand-in", 1), name
        assert result.err.count("\n") == 1
        chain.unlink()


def user_site(python: Path, base: Path) -> Path:
    code = "import site; print(site.getusersitepackages())"
    return Path(run_python(code, python=python, env={"PYTHONUSERBASE": str(base)}).out.strip())


def test_system_site_packages(wheel: Path, make_venv: Any, ask: str, tmp_path: Path) -> None:
    """Only with --system-site-packages does a venv read the user's folder, unless told -s."""
    venv = make_venv(system_site_packages=True)
    home = {"PYTHONUSERBASE": str(tmp_path)}
    other = make_venv("other", torch="none")
    other.install(wheel)
    shutil.copytree(other.site_packages, user_site(venv.python, tmp_path))
    served = venv.run(ask, env=home).json()
    assert (served["by"], served["finders"]) == ("stand-in", 1)
    assert served["file"].startswith(str(tmp_path))
    without = venv.run(ask, env=home, flags=["-s"]).json()
    assert (without["error"], without["finders"]) == ("ModuleNotFoundError", 0)

    venv.install(wheel)  # now both folders have a start-up file
    result = venv.run(ask, env=home)
    assert (result.json()["by"], result.json()["finders"]) == ("stand-in", 1)
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("left", ["nothing", "byte code"])
def test_the_package_is_gone_but_its_start_up_file_is_not(left: str, venv: Any, ask: str) -> None:
    """The README quotes what Python prints then."""
    package = venv.site_packages / "hadamard_finder"
    shutil.rmtree(package)
    missing = "hadamard_finder"
    if left == "byte code":
        (package / "__pycache__").mkdir(parents=True)
        missing = "hadamard_finder.finder"
    idle = venv.run("")
    assert (idle.code, idle.out) == (0, "")
    lines = idle.err.splitlines()
    pth = venv.site_packages / "hadamard_finder.pth"
    assert lines[0] == f"Error processing line 1 of {pth}:"
    assert f"  ModuleNotFoundError: No module named '{missing}'" in lines
    assert lines[-1] == "Remainder of file ignored"
    gone = venv.run(ask).json()
    assert (gone["error"], gone["finders"]) == ("ModuleNotFoundError", 0)
    assert venv.run("", flags=["-S"]).err == ""


def test_a_broken_meta_path_is_not_ours_to_report(venv: Any) -> None:
    first = venv.site_packages / "aa_first.pth"
    first.write_text("import hadamard_finder.finder, sys; sys.meta_path = None\n")
    result = venv.run("")
    assert "hadamard_finder" not in result.err


def test_names_in_the_working_directory_shadow_nothing(venv: Any, ask: str, tmp_path: Path) -> None:
    for name in ("finder", "takeover", "notice", "repair", "transform", "standin", "startup"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')\n")
    served = venv.run(ask, cwd=tmp_path).json()
    assert (served["by"], served["finders"]) == ("stand-in", 1)
    through_path = venv.run(ask, path=[tmp_path]).json()
    assert (through_path["by"], through_path["finders"]) == ("stand-in", 1)


def test_a_clone_beside_the_script_shadows_nothing(venv: Any, ask: str, tmp_path: Path) -> None:
    clone = tmp_path / "hadamard_finder"
    clone.mkdir()
    (clone / "pyproject.toml").touch()
    idle = venv.run("", cwd=tmp_path, path=[tmp_path]).check()
    assert idle.err == ""
    served = venv.run(ask, cwd=tmp_path, path=[tmp_path]).json()
    assert (served["by"], served["finders"]) == ("stand-in", 1)


def test_another_module_of_our_name_does_not_stop_python(
    venv: Any, ask: str, tmp_path: Path
) -> None:
    (tmp_path / "hadamard_finder.py").touch()
    result = venv.run(ask, path=[tmp_path])
    assert result.json()["finders"] == 0
    assert "ModuleNotFoundError: No module named 'hadamard_finder.finder'" in result.err
    # In the working directory alone it comes too late: start-up files run before that is looked at.
    served = venv.run(ask, cwd=tmp_path).json()
    assert (served["by"], served["finders"]) == ("stand-in", 1)


def test_without_torch_nothing_is_said_and_the_error_is_the_plain_one(
    wheel: Path, make_venv: Any, ask: str
) -> None:
    venv = make_venv(torch="none")
    venv.install(wheel)
    idle = venv.run("").check()
    assert idle.err == ""
    result = venv.run(ask)
    assert result.json()["text"] == "No module named 'fast_hadamard_transform'"
    assert result.err == ""
    assert venv.run(ask, path=[STUB_TORCH]).json()["by"] == "stand-in"
