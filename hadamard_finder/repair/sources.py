"""Which loaded modules' sources a sweep reads; most are read and parsed once in a process."""

from __future__ import annotations

import os
import sys
from io import FileIO
from typing import TYPE_CHECKING, Any, Literal

from hadamard_finder.finder import EXTENSION, PACKAGE

if TYPE_CHECKING:
    from hadamard_finder.repair.forms import Reading
    from hadamard_finder.repair.loaded import Loaded

# Top-level names. None of them imports the package, and together they are most of a process: the
# standard library, torch with what it requires, NumPy and SciPy.
NEVER_READ = sys.stdlib_module_names | {
    "filelock",
    "fsspec",
    "functorch",
    "hadamard_finder",
    "jinja2",
    "markupsafe",
    "mpmath",
    "networkx",
    "numpy",
    "scipy",
    "setuptools",
    "sympy",
    "torch",
    "torchgen",
    "triton",
    "typing_extensions",
    EXTENSION,
    PACKAGE,
}
_PACKAGE = PACKAGE.encode()
# Part of both names above, so that one search clears most files, and of most copies' names.
_NEAR = b"hadamard_transform"

# "silent": never read, or no word of ours is in there. "near": one is, but not the package's name.
# "unreadable": a zip archive, compiled code, a file that has gone or that is no Python.
Silence = Literal["silent", "near", "unreadable"]


def is_readable(name: str, names: dict[str, Any]) -> bool:
    """Whether a sweep may read the source of the module with that name and dict."""
    return "__file__" in names and name.partition(".")[0] not in NEVER_READ


class Library:
    """What the sources say of the modules, which it knows by name and id, as the finder does."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, int], Reading | Silence] = {}

    def is_silent(self, seen: Loaded) -> bool:
        """Whether it is known that the module has nothing to say."""
        return self._answers.get((seen.name, id(seen.module))) == "silent"

    def ask(self, seen: Loaded) -> Reading | Silence:
        """Return what the module's source says, where it names the package, else why not."""
        key = (seen.name, id(seen.module))
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = _answer(seen)
        return answer

    @staticmethod
    def needs_all(words: list[bytes]) -> bool:
        """Whether to find these words takes another look at what was silent before."""
        return not all(_NEAR in word for word in words)

    def search(self, seen: Loaded, words: list[bytes]) -> Reading | None:
        """Return what the module's source says, where it names the package or one of the words."""
        answer = self.ask(seen)
        if answer == "silent" or answer == "near":
            source = _source(seen)
            if source is None or not any(word in source for word in words):
                return None
            answer = _parsed(source)
        return None if isinstance(answer, str) else answer


def _answer(seen: Loaded) -> Reading | Silence:
    if seen.file is None or not is_readable(seen.name, seen.names):
        return "silent"
    source = _source(seen)
    if source is None:
        return "unreadable"
    if _NEAR not in source:
        return "silent"
    return _parsed(source) if _PACKAGE in source else "near"


def _source(seen: Loaded) -> bytes | None:
    path = seen.file or ""
    # A script may be a pipe (`python <(...)`): reading that would take its input away.
    if not path.endswith(".py") and not (seen.name == "__main__" and os.path.isfile(path)):
        return None
    try:
        with FileIO(path) as file:
            return file.readall()
    except (OSError, ValueError):
        return None


def _parsed(source: bytes) -> Reading | Literal["unreadable"]:
    # Not at the top: a process whose finder started with it never comes here.
    from hadamard_finder.repair import forms

    try:
        return forms.read(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "unreadable"
