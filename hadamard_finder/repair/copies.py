"""Finds copies of names that missed the package: ``from consumer import hadamard_transform as f``.

The modules that hold them need not mention the package at all.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hadamard_finder.repair.forms import Reading
    from hadamard_finder.repair.ledger import Ledger
    from hadamard_finder.repair.loaded import Loaded
    from hadamard_finder.repair.sources import Library

Key = tuple[str, str]  # module and name


class Copy(NamedTuple):
    seen: Loaded
    name: str
    origin: Key
    line: int
    rebound: bool  # something else in the module binds the name, too


def trace(
    roots: dict[Key, Key], modules: list[Loaded], library: Library, ledger: Ledger
) -> list[Copy]:
    """Return the copies in the modules that are None, False or filled by us, originals first.

    roots maps a name that missed the package to the name it was first bound to; what is found is
    added.
    """
    copies: list[Copy] = []
    readings: dict[tuple[str, int], tuple[Loaded, Reading]] = {}
    searched: set[str] = set()
    known = 0
    while len(roots) > known:  # a copy may have been copied
        known = len(roots)
        names = {name for _, name in roots} - searched
        searched |= names
        if names:
            readings |= _readings(names, modules, library)
        for seen, reading in readings.values():
            with suppress(Exception):  # a module so odd shall not keep the others from it
                copies += _copies_in(seen, reading, roots, ledger)
    return copies


def _readings(
    names: set[str], modules: list[Loaded], library: Library
) -> dict[tuple[str, int], tuple[Loaded, Reading]]:
    found = {}
    words = [name.encode() for name in names]
    everywhere = library.needs_all(words)
    for seen in modules:
        # `from consumer import *` names nothing: what the module holds has to give it away.
        starred = any(name in seen.names and seen.lacks(name) for name in names)
        if starred or everywhere or not library.is_silent(seen):
            with suppress(Exception):
                reading = library.search(seen, [b"import"] if starred else words)
                if reading is not None and not seen.is_being_imported():
                    found[seen.name, id(seen.module)] = (seen, reading)
    return found


def _copies_in(seen: Loaded, reading: Reading, roots: dict[Key, Key], ledger: Ledger) -> list[Copy]:
    copies = []
    for taken in reading.taken:
        module = seen.absolute(taken.level, taken.module)
        for origin, root in list(roots.items()):
            if origin[0] != module or taken.name not in (origin[1], "*"):
                continue
            name = origin[1] if taken.name == "*" else taken.bound
            copied = seen.state(name) in ("None", "False") or ledger.has(seen, name)
            if copied and (seen.name, name) not in roots:
                roots[seen.name, name] = root
                copies.append(Copy(seen, name, origin, taken.line, taken.rebound))
    return copies
