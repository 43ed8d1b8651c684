"""Why the real package does not load, told from the error of its import."""

from __future__ import annotations

import re
from typing import NamedTuple

from hadamard_finder.finder import EXTENSION, PACKAGE, SWITCH
from hadamard_finder.report import installed
from hadamard_finder.report.facts import Finding, Status

# The source archive on PyPI lacks the CUDA sources: only the repository can be built from.
REBUILD = (
    "python -m pip install --force-reinstall --no-deps --no-build-isolation "
    "git+https://github.com/Dao-AILab/fast-hadamard-transform"
)
_REINSTALL = "For the CUDA kernel, install the package again (needs the CUDA toolkit):"
_BUILDS = {"cpu": "is a CPU build", "hip": "is a ROCm build", "xpu": "is an XPU build"}


class Failure(NamedTuple):
    code: str
    pattern: str  # found in "Type: message"; its groups fill the texts
    cause: str
    step: str
    command: str = REBUILD


# The first that matches counts.
_FAILURES = (
    Failure(
        "torch-without-cuda",
        r"lib(?:c10|torch)_cuda\S*: cannot open shared object",
        "The extension needs a CUDA build of torch, but torch {torch} {build}.",
        "For the CUDA kernel, install a CUDA build of torch, then the package again:",
    ),
    Failure(
        "torch-without-rocm",
        r"lib(?:c10|torch)_hip\S*: cannot open shared object",
        "The extension needs a ROCm build of torch, but torch {torch} {build}.",
        "For the GPU kernel, install a ROCm build of torch, and build the extension against it.",
        "",
    ),
    Failure(
        "abi-mismatch",
        r"undefined symbol|Symbol not found|procedure could not be found",
        "The extension was compiled against another version of torch than {torch} (ABI mismatch): "
        "a function that it calls does not exist here.",
        "For the CUDA kernel, build the package against this torch (needs the CUDA toolkit):",
    ),
    Failure(
        "other-architecture",
        rf"{EXTENSION}[^/\s]*: cannot open shared object|wrong ELF class|incompatible architecture"
        r"|not a valid Win32",
        "The extension file is there, but the system cannot open it: it was built for another "
        "kind of processor.",
        "For the CUDA kernel, build the package on this machine (needs the CUDA toolkit):",
    ),
    Failure(
        "driver-missing",
        r"(?P<library>lib(?:cuda|nvidia-ml)\.so[\w.]*): cannot open shared object",
        "The NVIDIA driver's library {library} cannot be found: this machine has no NVIDIA driver, "
        "or its container was started without GPUs.",
        "On a GPU machine, install the driver, or start the container with its GPUs.",
        "",
    ),
    Failure(
        "cuda-runtime-missing",
        r"(?P<library>lib(?:cu|nv)\w+\.so[\w.]*): cannot open shared object",
        "The extension needs the CUDA library {library}, and the system finds no such file.",
        "For the CUDA kernel, add the folder with {library} to LD_LIBRARY_PATH, or build the "
        "package against the CUDA of this torch (needs the CUDA toolkit):",
    ),
    Failure(
        "library-missing",
        r"(?P<library>[\w.+-]+\.so[\w.]*): cannot open shared object|Library not loaded"
        r"|DLL load failed",
        "A library that the package needs cannot be found: {library}.",
        "For the CUDA kernel, install that library, or build the package on this machine:",
    ),
    Failure(
        "system-too-old",
        r"version `(?P<library>\w+_[\d.]+)' not found",
        "The extension was built on a newer system: it needs {library}.",
        "For the CUDA kernel, build the package on this system (needs the CUDA toolkit):",
    ),
    Failure(
        "extension-damaged",
        r"file too short|invalid ELF header|ELF load command|not a mach-o|cannot read file data",
        "The extension file is damaged: it was cut short or overwritten.",
        _REINSTALL,
    ),
    Failure(
        "not-the-extension",
        r"does not define module export function|does not define init function",
        "The extension file is a library, but not the extension: it lacks the function by which "
        "Python starts it.",
        _REINSTALL,
    ),
    Failure(
        "extension-missing",
        rf"No module named '{EXTENSION}'|{EXTENSION} has no functions",
        "The Python files of the package are installed, but its compiled extension is not: the "
        "build was skipped, or the file was removed.",
        "For the CUDA kernel, build the package (needs the CUDA toolkit):",
    ),
    Failure(
        "package-incomplete",
        rf"No module named '{PACKAGE}\.|cannot import name|^TypeError: it is ",
        "The installation is incomplete: Python files of the package are missing or empty.",
        _REINSTALL,
    ),
    Failure(
        "dependency-missing",
        r"No module named '(?P<library>[^']+)'",
        "The package needs the module {library}, which is not installed.",
        "Install what provides {library}.",
        "",
    ),
    Failure(
        "source-damaged",
        r"^(?:SyntaxError|IndentationError|TabError|EOFError|UnicodeDecodeError): "
        r"|bad marshal data|bad magic number|null bytes",
        "A Python file of the package is damaged: it was cut short or overwritten.",
        _REINSTALL,
    ),
    Failure(
        "numpy-abi",
        r"numpy\.\w+ size changed|compiled using NumPy 1|_ARRAY_API not found",
        "A module that the package imports, SciPy most likely, was compiled against another "
        "version of NumPy.",
        "For the CUDA kernel, install NumPy and SciPy again:",
        "python -m pip install --upgrade --force-reinstall numpy scipy",
    ),
)


def of_failed_load(status: Status) -> Finding:
    """Return why the real package does not load."""
    real = status.real
    error = f"{real.error_type}: {real.error}"
    for failure in _FAILURES:
        match = re.search(failure.pattern, error)
        if match is None:
            continue
        if failure.code == "extension-missing" and real.unusable_extensions:
            return _other_python(status)
        if failure.code == "extension-damaged" and installed.is_lfs_pointer(real.extension):
            return _lfs_pointer(real.extension)
        words = {key: value or real.error or "" for key, value in match.groupdict().items()}
        words["torch"] = status.torch.version or "of unknown version"
        words["build"] = _BUILDS.get(status.torch.backend or "", "has no such libraries")
        cause, step = failure.cause.format_map(words), failure.step.format_map(words)
        return Finding(failure.code, "note", cause, step, failure.command)
    return Finding(
        "load-failed",
        "note",
        f"The real package raises {real.error_type} while it loads.",
        "For the CUDA kernel, look at where it fails:",
        f"{SWITCH}=off python -c 'import {PACKAGE}'",
    )


def _other_python(status: Status) -> Finding:
    return Finding(
        "other-python",
        "note",
        f"The extension was built for another Python than {status.python}, or for another kind of "
        f"machine: {', '.join(status.real.unusable_extensions)}.",
        "For the CUDA kernel, build the package for this Python (needs the CUDA toolkit):",
        REBUILD,
    )


def _lfs_pointer(path: str | None) -> Finding:
    return Finding(
        "lfs-pointer",
        "note",
        f"The extension file is a Git LFS pointer, a few lines of text in place of the file: "
        f"{path}.",
        "For the CUDA kernel, fetch the real file in the clone that it came from, and install "
        "that:",
        "git lfs pull",
    )
