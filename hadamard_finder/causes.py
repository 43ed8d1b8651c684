"""Why the real package does not load, told from the error of its import."""

from __future__ import annotations

import re
from typing import NamedTuple

from hadamard_finder import installed
from hadamard_finder.facts import Finding, Status
from hadamard_finder.finder import EXTENSION, PACKAGE, SWITCH

# The source archive on PyPI lacks the CUDA sources: only the repository can be built from.
REBUILD = (
    "pip install --force-reinstall --no-deps --no-build-isolation "
    "git+https://github.com/Dao-AILab/fast-hadamard-transform"
)


class Failure(NamedTuple):
    code: str
    pattern: str  # found in "Type: message"; its groups fill the texts
    cause: str
    step: str


# The first that matches counts.
_FAILURES = (
    Failure(
        "torch-without-cuda",
        r"(?P<library>lib(?:c10|torch)_cuda\S*): cannot open shared object",
        "The extension needs a CUDA build of torch, but torch {torch} is a {backend} build.",
        "for the CUDA kernel, install a CUDA build of torch, then run: " + REBUILD,
    ),
    Failure(
        "torch-without-rocm",
        r"(?P<library>lib(?:c10|torch)_hip\S*): cannot open shared object",
        "The extension needs a ROCm build of torch, but torch {torch} is a {backend} build.",
        "for the GPU kernel, install a ROCm build of torch and rebuild the extension against it",
    ),
    Failure(
        "abi-mismatch",
        r"undefined symbol: (?P<symbol>\S+)|procedure could not be found|Symbol not found",
        "The extension was compiled against another version of torch than {torch}: a function it "
        "calls does not exist there.",
        "for the CUDA kernel, rebuild it against this torch: " + REBUILD,
    ),
    Failure(
        "other-architecture",
        EXTENSION + r"[^/\s]*: cannot open shared object|wrong ELF class|incompatible architecture"
        r"|not a valid Win32",
        "The extension file is there, but the system cannot open it: it was built for another "
        "kind of processor.",
        "for the CUDA kernel, build it on this machine: " + REBUILD,
    ),
    Failure(
        "driver-missing",
        r"(?P<library>(?:libcuda|libnvidia-ml)\.so\S*): cannot open shared object",
        "The NVIDIA driver's library {library} cannot be found: this machine has no NVIDIA driver, "
        "or the container was started without it.",
        "on a GPU machine, install the driver, or start the container with its GPUs",
    ),
    Failure(
        "cuda-runtime-missing",
        r"(?P<library>lib(?:cu|nv)\w*\.so(?:\.(?P<major>\d+))?\S*): cannot open shared object",
        "The extension needs the CUDA library {library}, and no such file can be found.",
        "for the CUDA kernel, put the folder with {library} on LD_LIBRARY_PATH, or rebuild "
        "against the CUDA that torch uses: " + REBUILD,
    ),
    Failure(
        "library-missing",
        r"(?P<library>[\w.+-]+\.(?:so|dylib|dll)[\d.]*): cannot open shared object"
        r"|Library not loaded: (?P<other>\S+)|DLL load failed",
        "A library that the extension needs cannot be found.",
        "install the library named in the error, or rebuild the extension here: " + REBUILD,
    ),
    Failure(
        "system-too-old",
        r"version `(?P<library>GLIBC\w*_[\d.]+)' not found",
        "The extension was built on a newer system: it needs {library}.",
        "for the CUDA kernel, build it on this system: " + REBUILD,
    ),
    Failure(
        "file-damaged",
        r"file too short|invalid ELF header|ELF load command|not a mach-o|ELF file's phentsize"
        r"|cannot read file data",
        "The extension file is damaged: it was cut short or overwritten.",
        "for the CUDA kernel, install it again: " + REBUILD,
    ),
    Failure(
        "not-the-extension",
        r"does not define module export function|dynamic module does not define",
        "The extension file loads, but it is not the extension: it lacks the function by which "
        "Python starts it.",
        "for the CUDA kernel, install it again: " + REBUILD,
    ),
    Failure(
        "extension-missing",
        rf"No module named '{EXTENSION}'|{EXTENSION} has no functions",
        "The Python files are installed, but the compiled extension is not: its build was skipped, "
        "or its file was removed.",
        "for the CUDA kernel, build it (needs the CUDA toolkit): " + REBUILD,
    ),
    Failure(
        "package-incomplete",
        rf"No module named '{PACKAGE}\.|cannot import name|partially initialized|it is None",
        "The installation is incomplete: Python files of the package are missing or empty.",
        "for the CUDA kernel, install it again: " + REBUILD,
    ),
    Failure(
        "dependency-missing",
        r"ModuleNotFoundError: No module named '(?P<library>[^']+)'",
        "The package needs the module {library}, which is not installed.",
        "install what provides {library}",
    ),
    Failure(
        "file-damaged",
        r"^(?:SyntaxError|IndentationError|EOFError|UnicodeDecodeError)|bad marshal data"
        r"|bad magic number|null bytes",
        "A Python file of the package is damaged: it was cut short or overwritten.",
        "for the CUDA kernel, install it again: " + REBUILD,
    ),
    Failure(
        "numpy-abi",
        r"numpy\.\w+ size changed|compiled using NumPy 1|_ARRAY_API not found",
        "A package that it uses, SciPy most likely, was compiled against another version of NumPy.",
        "python -m pip install --upgrade --force-reinstall numpy scipy",
    ),
)


def of_failed_load(status: Status) -> Finding:
    """Return why the real package does not load, from the error of the import."""
    real = status.real
    error = f"{real.error_type}: {real.error}"
    if real.error_type == "ModuleNotFoundError" and real.unusable_extensions:
        return Finding(
            "other-python",
            "note",
            f"The extension was built for another Python than {status.python}: "
            f"{', '.join(real.unusable_extensions)}.",
            f"for the CUDA kernel, build it for this Python: {REBUILD}",
        )
    for failure in _FAILURES:
        match = re.search(failure.pattern, error)
        if match is None:
            continue
        if failure.code == "file-damaged" and installed.is_lfs_pointer(real.extension):
            return Finding(
                "lfs-pointer",
                "note",
                "The extension file is a Git LFS pointer: a few lines of text in place of the "
                "real file.",
                "run `git lfs pull` where it came from, and install it again",
            )
        words = {key: value or "?" for key, value in match.groupdict().items()}
        words |= {"torch": status.torch.version or "?", "backend": status.torch.backend or "?"}
        cause, step = failure.cause.format_map(words), failure.step.format_map(words)
        return Finding(failure.code, "note", cause, step)
    return Finding(
        "load-failed",
        "note",
        f"The real package raises {real.error_type} while it loads.",
        f"to see where: {SWITCH}=off python -c 'import {PACKAGE}'",
    )
