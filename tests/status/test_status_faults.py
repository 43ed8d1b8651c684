"""For every broken installation, status names the cause and the next step, and exits right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import importlib_metadata
import pytest
from faults import FAULTS, build_real

REBUILD = (
    "python -m pip install --force-reinstall --no-deps --no-build-isolation "
    "git+https://github.com/Dao-AILab/fast-hadamard-transform"
)
DAMAGED = "The extension file is damaged: it was cut short or overwritten."
SOURCE_DAMAGED = "A Python file of the package is damaged: it was cut short or overwritten."
MISSING = (
    "The Python files of the package are installed, but its compiled extension is not: the build "
    "was skipped, or the file was removed."
)
INCOMPLETE = "The installation is incomplete: Python files of the package are missing or empty."
LIBRARY = "The extension needs the CUDA library {library}, and the system finds no such file."
AGAIN = "For the CUDA kernel, install the package again (needs the CUDA toolkit):"
RAISES = "The real package raises RuntimeError while it loads."
LOOK = (
    "For the CUDA kernel, look at where it fails:",
    "HADAMARD_FINDER=off python -c 'import fast_hadamard_transform'",
)
BUILD = "For the CUDA kernel, build the package{} (needs the CUDA toolkit):"


class Golden(NamedTuple):
    code: str
    cause: str
    step: str
    command: str


GOLDEN = {
    "missing-extension": Golden("extension-missing", MISSING, BUILD.format(""), REBUILD),
    "other-python": Golden(
        "other-python",
        "The extension was built for another Python than {python}, or for another kind of machine: "
        "{folder}/fast_hadamard_transform_cuda.cpython-36m-x86_64-linux-gnu.so.",
        BUILD.format(" for this Python"),
        REBUILD,
    ),
    "extension-folder": Golden("extension-missing", MISSING, BUILD.format(""), REBUILD),
    "empty-extension": Golden("extension-damaged", DAMAGED, AGAIN, REBUILD),
    "40-bytes": Golden("extension-damaged", DAMAGED, AGAIN, REBUILD),
    "lfs-pointer": Golden(
        "lfs-pointer",
        "The extension file is a Git LFS pointer, a few lines of text in place of the file: "
        "{folder}/fast_hadamard_transform_cuda.so.",
        "For the CUDA kernel, fetch the real file in the clone that it came from, and install "
        "that:",
        "git lfs pull",
    ),
    "zeros": Golden("extension-damaged", DAMAGED, AGAIN, REBUILD),
    "undefined-symbol": Golden(
        "abi-mismatch",
        "The extension was compiled against another version of torch than {torch} (ABI mismatch): "
        "a function that it calls does not exist here.",
        BUILD.format(" against this torch"),
        REBUILD,
    ),
    "no-cuda-torch": Golden(
        "torch-without-cuda",
        "The extension needs a CUDA build of torch, but torch {torch} has no such libraries.",
        "For the CUDA kernel, install a CUDA build of torch, then the package again:",
        REBUILD,
    ),
    "no-cuda-runtime": Golden(
        "cuda-runtime-missing",
        LIBRARY.format(library="libcudart.so.12"),
        "For the CUDA kernel, add the folder with libcudart.so.12 to LD_LIBRARY_PATH, or build "
        "the package against the CUDA of this torch (needs the CUDA toolkit):",
        REBUILD,
    ),
    "no-init-function": Golden(
        "not-the-extension",
        "The extension file is a library, but not the extension: it lacks the function by which "
        "Python starts it.",
        AGAIN,
        REBUILD,
    ),
    "other-architecture": Golden(
        "other-architecture",
        "The extension file is there, but the system cannot open it: it was built for another "
        "kind of processor.",
        BUILD.format(" on this machine"),
        REBUILD,
    ),
    "sigbus": Golden(
        "crash",
        "Loading the real package ends Python (SIGBUS): its file is shorter than it says, most "
        "likely cut by a copy or a download. No Python code can catch that.",
        "Install the package again, or let the stand-in serve the import, which leaves the "
        "package untouched:",
        "export HADAMARD_FINDER=force",
    ),
    "namespace-leftover": Golden(
        "leftover-folder",
        "Only a folder without __init__.py is left of the package: "
        "{folder}/fast_hadamard_transform.",
        "If it is what an uninstall left behind, remove it.",
        "",
    ),
    "empty-init": Golden("package-incomplete", INCOMPLETE, AGAIN, REBUILD),
    "no-interface": Golden("package-incomplete", INCOMPLETE, AGAIN, REBUILD),
    "zero-filled": Golden("source-damaged", SOURCE_DAMAGED, AGAIN, REBUILD),
    "half-cut": Golden("source-damaged", SOURCE_DAMAGED, AGAIN, REBUILD),
    "cut-bytecode": Golden("source-damaged", SOURCE_DAMAGED, AGAIN, REBUILD),
    "ctypes": Golden(
        "cuda-runtime-missing",
        LIBRARY.format(library="libcudart.so.11.0"),
        "For the CUDA kernel, add the folder with libcudart.so.11.0 to LD_LIBRARY_PATH, or build "
        "the package against the CUDA of this torch (needs the CUDA toolkit):",
        REBUILD,
    ),
    "numpy-abi": Golden(
        "numpy-abi",
        "A module that the package imports, SciPy most likely, was compiled against another "
        "version of NumPy.",
        "For the CUDA kernel, install NumPy and SciPy again:",
        "python -m pip install --upgrade --force-reinstall numpy scipy",
    ),
    "runtime-error": Golden("load-failed", RAISES, *LOOK),
    "late-failure": Golden("load-failed", RAISES, *LOOK),
    "thread-goes-on": Golden("load-failed", RAISES, *LOOK),
}


def test_every_fault_has_a_golden_cause() -> None:
    assert GOLDEN.keys() == FAULTS.keys()


@pytest.mark.parametrize("name", GOLDEN)
def test_the_cause_and_the_next_step(name: str, ask: Callable[..., Any], tmp_path: Path) -> None:
    fault = FAULTS[name]
    if fault.obstacle():
        pytest.skip(fault.obstacle())
    fault.build(tmp_path)
    answer = ask(path=[tmp_path])

    status = answer.status
    code, cause, step, command = GOLDEN[name]
    torch = importlib_metadata.version("torch")
    cause = cause.format(folder=tmp_path, torch=torch, python=status["python"])
    found = answer.finding(code)
    assert (found["cause"], found["step"], found["command"]) == (cause, step, command)
    assert answer.codes[0] == code

    assert answer.code == (1 if fault.kills else 0)
    assert status["works"] == (not fault.kills)
    assert status["source"] == ("none" if fault.kills else "stand-in")
    assert found["severity"] == ("error" if fault.kills else "note")
    if not fault.kills:
        assert fault.text in status["reason"]
    assert status["real"]["signal"] == ("SIGBUS" if fault.kills else None)
    assert status["real"]["loads"] is (None if name == "namespace-leftover" else False)


def test_force_serves_the_import_beside_an_extension_that_kills(
    ask: Callable[..., Any], tmp_path: Path
) -> None:
    fault = FAULTS["sigbus"]
    if fault.obstacle():
        pytest.skip(fault.obstacle())
    fault.build(tmp_path)
    answer = ask(path=[tmp_path], env={"HADAMARD_FINDER": "force"})
    assert (answer.code, answer.status["source"]) == (0, "stand-in")
    assert answer.status["reason"] == "HADAMARD_FINDER=force"
    assert answer.status["real"]["signal"] == "SIGBUS"
    assert answer.finding("crash")["severity"] == "note"


def test_off_leaves_a_broken_package_broken(ask: Callable[..., Any], tmp_path: Path) -> None:
    FAULTS["missing-extension"].build(tmp_path)
    answer = ask(path=[tmp_path], env={"HADAMARD_FINDER": "off"})
    assert (answer.code, answer.status["source"]) == (1, "none")
    assert answer.codes == ["off", "extension-missing"]
    assert answer.finding("off")["command"] == "unset HADAMARD_FINDER"


@pytest.mark.parametrize(
    ("line", "ending"),
    [
        ("import os; os._exit(7)", "exit status 7"),
        ("import os; os.kill(os.getpid(), 11)", "SIGSEGV"),
        ("import os; os.kill(os.getpid(), 4)", "SIGILL"),
    ],
)
def test_whatever_ends_the_import_is_named(
    line: str, ending: str, ask: Callable[..., Any], tmp_path: Path
) -> None:
    build_real(tmp_path, init=f"import sys; print('last words', file=sys.stderr)\n{line}\n")
    answer = ask(path=[tmp_path])
    assert (answer.code, answer.status["source"]) == (1, "none")
    assert answer.status["reason"] == f"the import of fast_hadamard_transform is ended by {ending}"
    assert answer.status["real"]["signal"] == ending
    assert answer.status["real"]["error"] == "last words"
    assert ending in answer.finding("crash")["cause"]


def test_an_import_that_never_ends_is_ended(ask: Callable[..., Any], tmp_path: Path) -> None:
    build_real(tmp_path, init="import threading; threading.Event().wait()\n")
    answer = ask("--timeout", "3", path=[tmp_path])
    assert (answer.code, answer.status["source"]) == (1, "none")
    assert answer.status["real"]["timed_out"] is True
    assert answer.status["real"]["loads"] is False
    assert answer.status["reason"].endswith("did not end in time")
    assert answer.finding("hang")["command"] == "export HADAMARD_FINDER=force"


def test_what_the_package_prints_stays_out_of_the_answer(
    ask: Callable[..., Any], tmp_path: Path
) -> None:
    init = "import os; print('{}'); os.write(1, b'{}\\n')\n"
    build_real(
        tmp_path,
        init=init + "def hadamard_transform(x): pass\nimport torch, fast_hadamard_transform_cuda\n",
    )
    answer = ask(path=[tmp_path])
    assert (answer.code, answer.status["source"]) == (0, "real")


def test_a_package_that_leaves_python_by_itself(ask: Callable[..., Any], tmp_path: Path) -> None:
    build_real(tmp_path, init="raise SystemExit('go away')\n")
    answer = ask(path=[tmp_path])
    assert (answer.code, answer.status["source"]) == (1, "none")
    assert answer.status["reason"] == "SystemExit: go away"
