"""Installations of ``fast_hadamard_transform``, broken in the ways that were met in the field.

Standard library only, and valid on every Python we support: children of other interpreters build
their own. The sources here are ours; they have the real package's names and none of its code.
"""

from __future__ import annotations

import platform
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "fast_hadamard_transform"
INTERFACE = "fast_hadamard_transform_interface"
EXTENSION = "fast_hadamard_transform_cuda"

REAL_INIT = f"""\
__version__ = "1.1.0"

from {PACKAGE}.{INTERFACE} import hadamard_transform
"""
REAL_INTERFACE = f"""\
import torch

import {EXTENSION}


def hadamard_transform(x, scale=1.0):
    return {EXTENSION}.fast_hadamard_transform(x, scale)


def hadamard_transform_12N(x, scale=1.0):
    return {EXTENSION}.fast_hadamard_transform_12N(x, scale)
"""
# In Python, so that it loads without a compiler; the result names who computed it.
REAL_EXTENSION = """\
def fast_hadamard_transform(x, scale):
    return ("real", x, scale)


def fast_hadamard_transform_12N(x, scale):
    return ("real 12N", x, scale)
"""


@dataclass(frozen=True)
class Fault:
    """One way in which an installation is broken."""

    name: str
    build: Callable[[Path], None]
    text: str  # part of the original error, and so of the warning
    raises: str = "ImportError"  # the error without hadamard_finder; "" where the import succeeds
    extension: bool = False  # what is broken is the extension: it fails on its own, too
    kills: bool = False  # the import ends the interpreter
    needs: str = ""  # a program without which it cannot be built

    def obstacle(self) -> str:
        """Return why it cannot be built on this machine, or ""."""
        if self.needs and shutil.which(self.needs) is None:
            return f"{self.needs} is not installed"
        if self.needs and platform.system() != "Linux":
            return "shared objects are built and broken for Linux only"
        return ""


def build_real(
    folder: Path,
    *,
    init: str | None = REAL_INIT,
    interface: str | None = REAL_INTERFACE,
    extension: str | None = REAL_EXTENSION,
) -> None:
    """Lay a working package into ``folder``; other sources, or None for no such file."""
    package = folder / PACKAGE
    package.mkdir(parents=True, exist_ok=True)
    for file, source in (
        (package / "__init__.py", init),
        (package / f"{INTERFACE}.py", interface),
        (folder / f"{EXTENSION}.py", extension),
    ):
        if source is not None:
            file.write_text(source, encoding="utf-8")


def clear(folder: Path) -> None:
    """Take away whatever was laid into ``folder``."""
    shutil.rmtree(folder / PACKAGE, ignore_errors=True)
    shutil.rmtree(folder / EXTENSION, ignore_errors=True)
    for file in folder.glob(f"{EXTENSION}.*"):
        file.unlink()


def _with_extension(content: bytes) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        build_real(folder, extension=None)
        (folder / f"{EXTENSION}.so").write_bytes(content)

    return build


def _compile(folder: Path, source: str, *options: str) -> Path:
    build_real(folder, extension=None)
    target = folder / f"{EXTENSION}.so"
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(target), *options]
    subprocess.run(command, input=source, text=True, check=True, capture_output=True)
    return target


def _undefined_symbol(folder: Path) -> None:
    symbol = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib"
    call = f"void {symbol}(void); void *PyInit_{EXTENSION}(void) {{ {symbol}(); return 0; }}"
    _compile(folder, call)


def _missing_library(library: str) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / library
        command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(path)]
        command.append(f"-Wl,-soname,{library}")
        subprocess.run(command, input="int there;", text=True, check=True, capture_output=True)
        source = f"extern int there; void *PyInit_{EXTENSION}(void) {{ return &there; }}"
        # `-x none`: what follows is a library, not C.
        _compile(folder, source, "-x", "none", str(path))
        path.unlink()

    return build


def _no_init_function(folder: Path) -> None:
    _compile(folder, "int nothing;")


def _other_architecture(folder: Path) -> None:
    target = _compile(folder, "int nothing;")
    image = bytearray(target.read_bytes())
    image[18:20] = (0x2B).to_bytes(2, sys.byteorder)  # e_machine: SPARC, as no machine of ours is
    target.write_bytes(image)


def _cut_extension(folder: Path) -> None:
    target = _compile(folder, "char data[65536] = {1};")
    target.write_bytes(target.read_bytes()[:4096])


def _missing_extension(folder: Path) -> None:
    build_real(folder, extension=None)


def _extension_for_another_python(folder: Path) -> None:
    build_real(folder, extension=None)
    (folder / f"{EXTENSION}.cpython-36m-x86_64-linux-gnu.so").write_bytes(b"\x7fELF")


def _extension_folder(folder: Path) -> None:
    build_real(folder, extension=None)
    (folder / EXTENSION / "__pycache__").mkdir(parents=True)


def _namespace_leftover(folder: Path) -> None:
    (folder / PACKAGE / "__pycache__").mkdir(parents=True)


def _source(**sources: str | None) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        build_real(folder, **sources)

    return build


def _cut_bytecode(folder: Path) -> None:
    build_real(folder)
    source = folder / PACKAGE / f"{INTERFACE}.py"
    compiled = source.with_suffix(".pyc")
    py_compile.compile(str(source), cfile=str(compiled), doraise=True)
    source.unlink()
    compiled.write_bytes(compiled.read_bytes()[:60])


def _failure_after_submodules(folder: Path) -> None:
    deep = folder / PACKAGE / "deep"
    deep.mkdir(parents=True)
    (deep / "__init__.py").write_text("")
    (deep / "inner.py").write_text("value = 1\n")
    init = f"{REAL_INIT}import {PACKAGE}.deep.inner\nraise RuntimeError('failed at the very end')\n"
    build_real(folder, init=init)


# The thread is in the middle of an import when the package fails. Once a test sets ``go`` it goes
# on, and imports whatever else it can reach. The package's globals are gone by then.
_THREAD_INIT = f"""\
import sys
import threading
import types

{REAL_INIT}
gate = types.ModuleType("late_gate")
gate.reached, gate.go = threading.Event(), threading.Event()
gate.errors = []
sys.modules["late_gate"] = gate


def late(gate):
    for name in ("{PACKAGE}.late", "{PACKAGE}.later", "{PACKAGE}.{INTERFACE}", "{EXTENSION}"):
        try:
            __import__(name)
        except Exception as error:
            gate.errors.append((name, type(error).__name__))


gate.thread = threading.Thread(target=late, args=(gate,), daemon=True)
gate.thread.start()
gate.reached.wait(30)
raise RuntimeError("failed while a thread goes on")
"""


def _thread_goes_on(folder: Path) -> None:
    build_real(folder, init=_THREAD_INIT)
    package = folder / PACKAGE
    (package / "late.py").write_text(
        "import late_gate\nlate_gate.reached.set()\nlate_gate.go.wait(30)\n"
    )
    (package / "later.py").write_text("value = 1\n")


_LFS_POINTER = b"""version https://git-lfs.github.com/spec/v1
oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
size 19000000
"""
_CTYPES = f"import ctypes\n\nctypes.CDLL('libcudart.so.11.0')\n{REAL_INTERFACE}"
_NOT_INSTALLED = f"{EXTENSION} is not installed"

_ALL = (
    # The extension
    Fault(
        "missing-extension",
        _missing_extension,
        _NOT_INSTALLED,
        raises="ModuleNotFoundError",
        extension=True,
    ),
    Fault(
        "other-python",
        _extension_for_another_python,
        _NOT_INSTALLED,
        raises="ModuleNotFoundError",
        extension=True,
    ),
    Fault("extension-folder", _extension_folder, "only a folder", raises="", extension=True),
    Fault("empty-extension", _with_extension(b""), "file too short", extension=True),
    Fault("40-bytes", _with_extension(b"\x7fELF" + bytes(36)), "file too short", extension=True),
    Fault("lfs-pointer", _with_extension(_LFS_POINTER), "invalid ELF header", extension=True),
    Fault("zeros", _with_extension(bytes(8192)), "invalid ELF header", extension=True),
    Fault(
        "undefined-symbol",
        _undefined_symbol,
        "undefined symbol: _ZN3c104cuda29c10_cuda_check_implementation",
        extension=True,
        needs="gcc",
    ),
    Fault(
        "no-cuda-torch",
        _missing_library("libc10_cuda.so"),
        "libc10_cuda.so: cannot open shared object file",
        extension=True,
        needs="gcc",
    ),
    Fault(
        "no-cuda-runtime",
        _missing_library("libcudart.so.12"),
        "libcudart.so.12: cannot open shared object file",
        extension=True,
        needs="gcc",
    ),
    Fault(
        "no-init-function",
        _no_init_function,
        f"does not define module export function (PyInit_{EXTENSION})",
        extension=True,
        needs="gcc",
    ),
    Fault(
        "other-architecture",
        _other_architecture,
        "cannot open shared object file",
        extension=True,
        needs="gcc",
    ),
    Fault("sigbus", _cut_extension, "", raises="SIGBUS", extension=True, kills=True, needs="gcc"),
    # The Python files
    Fault("namespace-leftover", _namespace_leftover, "only a folder without __init__.py"),
    Fault("empty-init", _source(init=""), "loads but is empty"),
    Fault(
        "no-interface",
        _source(interface=None),
        f"No module named '{PACKAGE}.{INTERFACE}'",
        raises="ModuleNotFoundError",
    ),
    Fault("zero-filled", _source(interface="\0" * 4096), "null bytes", raises="SyntaxError"),
    Fault(
        "half-cut",
        _source(interface=REAL_INTERFACE[: REAL_INTERFACE.index("scale=1.0")]),
        "SyntaxError: ",
        raises="SyntaxError",
    ),
    Fault("cut-bytecode", _cut_bytecode, "marshal data too short", raises="EOFError"),
    # What it depends on
    Fault(
        "ctypes",
        _source(interface=_CTYPES),
        "OSError: libcudart.so.11.0: cannot open shared object file",
        raises="OSError",
    ),
    Fault(
        "numpy-abi",
        _source(interface="raise ValueError('numpy.dtype size changed, expected 96 from C')"),
        "ValueError: numpy.dtype size changed",
        raises="ValueError",
    ),
    Fault(
        "runtime-error",
        _source(interface="raise RuntimeError('CUDA driver initialization failed')"),
        "RuntimeError: CUDA driver initialization failed",
        raises="RuntimeError",
    ),
    Fault(
        "late-failure",
        _failure_after_submodules,
        "RuntimeError: failed at the very end",
        raises="RuntimeError",
    ),
    Fault(
        "thread-goes-on",
        _thread_goes_on,
        "RuntimeError: failed while a thread goes on",
        raises="RuntimeError",
    ),
)
FAULTS: dict[str, Fault] = {fault.name: fault for fault in _ALL}
