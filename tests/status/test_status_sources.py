"""Each source that can serve the import, as the command line sees it in a fresh process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults import FAULTS, build_real
from support import STUB_TORCH, run

IDENTITY = "def hadamard_transform(x, scale=1.0):\n    return x\n"


def test_the_standin_where_nothing_is_installed(ask: Callable[..., Any]) -> None:
    answer = ask()
    status = answer.status
    assert (answer.code, status["source"], status["works"]) == (0, "stand-in", True)
    assert status["reason"] == "fast_hadamard_transform is not installed"
    assert Path(status["location"]).parent.parent.name == "standin"
    assert (status["scope"], status["imported"]) == ("a fresh process", False)
    assert (status["active"], status["finder"]) == (True, {"position": 0, "ahead": []})
    assert status["real"]["installed"] is False
    assert status["real"]["loads"] is None
    assert answer.codes == []
    assert [setting["origin"] for setting in status["settings"]] == ["default", "default"]
    assert status["checks"] is status["consumers"] is None


def test_the_real_package_where_it_works(ask: Callable[..., Any], tmp_path: Path) -> None:
    build_real(tmp_path)
    answer = ask(path=[tmp_path])
    status = answer.status
    file = str(tmp_path / "fast_hadamard_transform" / "__init__.py")
    assert (answer.code, status["source"], status["location"]) == (0, "real", file)
    assert status["real"]["loads"] is True
    assert status["real"]["version"] == "1.1.0"
    assert status["real"]["location"] == file
    assert status["real"]["copies"] == [file]
    assert status["real"]["extension"] == str(tmp_path / "fast_hadamard_transform_cuda.py")
    assert status["real"]["seconds"] >= 0
    # No GPU in the stub: the kernel cannot run on the CPU.
    assert answer.codes == ["no-gpu"]
    assert answer.finding("no-gpu")["command"] == "export HADAMARD_FINDER=force"


def test_force_sets_a_working_package_aside(ask: Callable[..., Any], tmp_path: Path) -> None:
    build_real(tmp_path)
    answer = ask(path=[tmp_path], env={"HADAMARD_FINDER": "force"})
    assert (answer.code, answer.status["source"]) == (0, "stand-in")
    assert answer.status["real"]["loads"] is True
    (switch,) = [s for s in answer.status["settings"] if s["name"] == "HADAMARD_FINDER"]
    assert (switch["value"], switch["origin"], switch["invalid"]) == ("force", "environment", None)


def test_off_without_the_package(ask: Callable[..., Any]) -> None:
    answer = ask(env={"HADAMARD_FINDER": "off"})
    assert (answer.code, answer.status["source"]) == (1, "none")
    assert answer.status["reason"].startswith("ModuleNotFoundError: No module named")
    assert answer.codes == ["off"]


def test_unknown_settings_are_named(ask: Callable[..., Any]) -> None:
    answer = ask(env={"HADAMARD_FINDER": "on", "HADAMARD_FINDER_ALGORITHM": "fft"})
    assert answer.code == 0
    assert answer.status["algorithm"] == "butterfly"
    values = [(s["value"], s["origin"], s["invalid"]) for s in answer.status["settings"]]
    assert values == [("auto", "default", "on"), ("butterfly", "default", "fft")]
    steps = [item["step"] for item in answer.status["findings"]]
    assert steps == [
        "Set it to one of: auto, off, force.",
        "Set it to one of: butterfly, matmul, compiled.",
    ]


def test_the_algorithm_that_is_set(ask: Callable[..., Any]) -> None:
    answer = ask(env={"HADAMARD_FINDER_ALGORITHM": " Matmul "})
    assert answer.status["algorithm"] == "matmul"
    assert answer.status["settings"][1]["origin"] == "environment"


def test_another_projects_module(ask: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "fast_hadamard_transform.py"
    file.write_text(IDENTITY)
    answer = ask(path=[tmp_path])
    assert (answer.code, answer.status["source"]) == (0, "foreign")
    assert answer.status["location"] == str(file)
    assert answer.status["real"]["installed"] is False
    found = answer.finding("foreign")
    assert str(file) in found["cause"]
    assert found["command"] == "python -m hadamard_finder status --check"


def test_a_port_without_an_extension_is_real(ask: Callable[..., Any], tmp_path: Path) -> None:
    package = tmp_path / "fast_hadamard_transform"
    package.mkdir()
    (package / "fast_hadamard_transform_interface.py").write_text(IDENTITY)
    (package / "__init__.py").write_text(
        "from fast_hadamard_transform.fast_hadamard_transform_interface import hadamard_transform\n"
    )
    answer = ask(path=[tmp_path])
    assert (answer.code, answer.status["source"]) == (0, "real")
    assert answer.status["real"]["installed"] is True


def test_another_projects_module_without_the_function(
    ask: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, types\n"
        "sys.modules['fast_hadamard_transform'] = types.ModuleType('fast_hadamard_transform')\n"
    )
    answer = ask(path=[tmp_path])
    assert (answer.code, answer.status["source"]) == (1, "foreign")
    assert answer.finding("foreign")["severity"] == "error"
    assert "made in memory" in answer.finding("foreign")["cause"]


def test_a_deliberate_block(ask: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nsys.modules['fast_hadamard_transform'] = None\n"
    )
    answer = ask(path=[tmp_path])
    assert (answer.code, answer.status["source"]) == (1, "blocked")
    assert answer.codes == ["blocked"]


def test_a_torch_that_does_not_import(ask: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise OSError('libtorch_cpu.so: cut')\n")
    answer = ask(torch=tmp_path)
    assert (answer.code, answer.status["source"]) == (1, "none")
    assert answer.status["torch"]["error"] == "OSError: libtorch_cpu.so: cut"
    assert answer.status["torch"]["devices"] is None
    assert answer.codes == ["torch-broken"]


def test_a_torch_that_kills(ask: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("import os; os.kill(os.getpid(), 11)\n")
    answer = ask(torch=tmp_path)
    assert (answer.code, answer.status["source"]) == (1, "none")
    assert answer.status["torch"]["error"] == "the import of torch is ended by SIGSEGV"
    assert answer.status["real"]["signal"] is None
    assert answer.codes == ["torch-broken"]


@pytest.mark.parametrize(
    ("lines", "backend"),
    [
        ("cuda: Optional[str] = None\nhip: Optional[str] = None", "cpu"),
        ("cuda: Optional[str] = '12.6'\nhip: Optional[str] = None", "cuda"),
        ("cuda: Optional[str] = None\nhip: Optional[str] = '6.4'", "hip"),
        ("cuda = None\nxpu = '20250101'", "xpu"),
    ],
)
@pytest.mark.skipif(sys.platform == "darwin", reason="torch for Apple's chips is always for mps")
def test_the_build_of_torch_comes_from_its_files(
    lines: str, backend: str, ask: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "torch").mkdir()
    for file in STUB_TORCH.glob("torch/*.py"):
        (tmp_path / "torch" / file.name).write_text(file.read_text())
    version = f"from typing import Optional\n__version__ = '9.9'\n{lines}\n"
    (tmp_path / "torch" / "version.py").write_text(version)
    FAULTS["missing-extension"].build(tmp_path)
    answer = ask(torch=tmp_path)
    assert answer.status["torch"]["backend"] == backend
    assert answer.status["torch"]["devices"] == ["cpu"]


def test_the_gpus_of_torch_are_counted_by_the_child(
    ask: Callable[..., Any], tmp_path: Path
) -> None:
    build_real(tmp_path)
    (tmp_path / "torch").mkdir()
    for file in STUB_TORCH.glob("torch/*.py"):
        (tmp_path / "torch" / file.name).write_text(file.read_text())
    with (tmp_path / "torch" / "__init__.py").open("a") as init:
        init.write("class cuda:\n    device_count = staticmethod(lambda: 2)\n")
        init.write("class xpu:\n    device_count = staticmethod(lambda: 1 // 0)\n")
    answer = ask(path=[tmp_path], torch=tmp_path)
    assert answer.status["torch"]["devices"] == ["cpu", "cuda:0", "cuda:1"]
    assert answer.codes == []


def test_devices_whose_count_kills(ask: Callable[..., Any], tmp_path: Path) -> None:
    build_real(tmp_path)
    (tmp_path / "torch").mkdir()
    for file in STUB_TORCH.glob("torch/*.py"):
        (tmp_path / "torch" / file.name).write_text(file.read_text())
    with (tmp_path / "torch" / "__init__.py").open("a") as init:
        init.write("class cuda:\n    @staticmethod\n    def device_count():\n")
        init.write("        import os; os.kill(os.getpid(), 11)\n")
    status = ask(path=[tmp_path], torch=tmp_path).status
    assert (status["source"], status["real"]["loads"]) == ("real", True)
    assert status["reason"] == "the count of devices is ended by SIGSEGV"
    assert status["torch"]["devices"] is None
    assert status["real"]["signal"] is None


def test_two_copies_on_the_path(ask: Callable[..., Any], tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    build_real(first)
    build_real(second)
    answer = ask(path=[first, second])
    hidden = str(second / "fast_hadamard_transform" / "__init__.py")
    assert answer.status["real"]["copies"][1] == hidden
    assert hidden in answer.finding("two-copies")["cause"]


def test_one_copy_that_is_on_the_path_twice(ask: Callable[..., Any], tmp_path: Path) -> None:
    build_real(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    answer = ask(path=[tmp_path / "real", tmp_path / "link"])
    assert len(answer.status["real"]["copies"]) == 1
    assert "two-copies" not in answer.codes


def test_distributions_that_provide_the_name(ask: Callable[..., Any], tmp_path: Path) -> None:
    build_real(tmp_path)
    for name, file, text in (
        ("b_wheel-2.0", "RECORD", "fast_hadamard_transform/__init__.py,,\n"),
        ("A_old-1.0", "top_level.txt", "fast_hadamard_transform\n"),
        ("other-3.0", "RECORD", "other/standin/fast_hadamard_transform/__init__.py,,\n"),
    ):
        info = tmp_path / f"{name}.dist-info"
        info.mkdir()
        name, version = name.split("-")
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / file).write_text(text)
    status = ask(path=[tmp_path]).status
    assert status["real"]["distributions"] == [
        {"name": "A_old", "version": "1.0"},
        {"name": "b_wheel", "version": "2.0"},
    ]


def test_finders_ahead_of_ours(ask: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "ahead.py").write_text(
        "class Ahead:\n    find_spec = staticmethod(lambda *_: None)\n"
    )
    (tmp_path / "sitecustomize.py").write_text(
        "import ahead, sys\nsys.meta_path.insert(0, ahead.Ahead)\n"
    )
    status = ask(path=[tmp_path]).status
    assert status["finder"] == {"position": 1, "ahead": ["ahead.Ahead"]}


@pytest.mark.parametrize(
    "arguments",
    [[], ["stats"], ["status", "--jsn"], ["status", "--timeout", "0"], ["status", "--timeout=x"]],
)
def test_a_wrong_command_line_exits_with_2(arguments: list[str]) -> None:
    done = run([sys.executable, "-m", "hadamard_finder", *arguments])
    assert (done.code, done.out) == (2, "")
    assert "usage: python -m hadamard_finder" in done.err


@pytest.mark.parametrize("value", ["0", "x", "nan", "-1"])
def test_a_timeout_that_is_none_is_named(value: str) -> None:
    done = run([sys.executable, "-m", "hadamard_finder", "status", f"--timeout={value}"])
    assert f"{value} is not a number of seconds above 0" in done.err
