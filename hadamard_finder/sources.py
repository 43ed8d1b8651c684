"""Which loaded modules' sources a sweep reads; each is read and parsed once in a process."""

from __future__ import annotations

import os
import sys
from io import FileIO
from typing import TYPE_CHECKING, Literal

from hadamard_finder.finder import EXTENSION, PACKAGE

if TYPE_CHECKING:
    from hadamard_finder.consumers import Reading
    from hadamard_finder.loaded import Loaded

# "silent": nothing in there concerns us. "unreadable": a zip archive, compiled code, a file that
# has gone or that is no Python.
Silence = Literal["silent", "unreadable"]

# Nobody in there imports the package, and they make up most of a process.
NEVER_READ = sys.stdlib_module_names | {
    "functorch",
    "hadamard_finder",
    "numpy",
    "scipy",
    "torch",
    "torchgen",
    EXTENSION,
    PACKAGE,
}
# In the source of whoever imports the package, or takes hadamard_transform from one that does.
_WORD = b"hadamard"


class Library:
    """Answers by module name and id, as the finder's state knows modules."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, int], Reading | Silence] = {}

    def ask(self, seen: Loaded, words: tuple[bytes, ...] = ()) -> Reading | Silence:
        """Return what the module's source says, or why nothing is known of it.

        words are those beside our own that make a source worth parsing.
        """
        key = (seen.name, id(seen.module))
        answer = self._answers.get(key)
        if answer is None or (words and answer == "silent"):
            answer = self._answers[key] = _answer(seen, (_WORD, *words))
        return answer


def _answer(seen: Loaded, words: tuple[bytes, ...]) -> Reading | Silence:
    path = seen.file
    if path is None or seen.name.partition(".")[0] in NEVER_READ:
        return "silent"
    # A script may be a pipe (`python <(...)`): reading that would take its input away.
    if not path.endswith(".py") and not (seen.name == "__main__" and os.path.isfile(path)):
        return "unreadable"
    try:
        with FileIO(path) as file:
            source = file.readall()
    except (OSError, ValueError):
        return "unreadable"
    if not any(word in source for word in words):
        return "silent"
    # Not at the top: a process whose finder started with it never comes here.
    from hadamard_finder import consumers

    try:
        return consumers.read(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "unreadable"
