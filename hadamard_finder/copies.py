"""Finds copies of names that missed the package: ``from consumer import hadamard_transform as f``.

The modules that hold them need not mention the package at all.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from hadamard_finder.loaded import ABSENT, Loaded, each
from hadamard_finder.sources import NEVER_READ

if TYPE_CHECKING:
    from hadamard_finder.consumers import Reading
    from hadamard_finder.ledger import Ledger
    from hadamard_finder.sources import Library

Key = tuple[str, str]  # module and name


class Copy(NamedTuple):
    seen: Loaded
    name: str
    origin: Key
    line: int
    rebound: bool  # something else in the module binds the name, too


def trace(
    roots: dict[Key, Key], idents: dict[str, int] | None, library: Library, ledger: Ledger
) -> list[Copy]:
    """Return the copies that are None, False or filled by us, each after the one it was made of.

    roots maps a name that missed the package to the name it was first bound to; what is found is
    added. idents are the modules to look at by name and id, None for all.
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
            readings |= _readings(names, idents, library)
        for seen, reading in readings.values():
            with suppress(Exception):  # a module so odd shall not keep the others from it
                copies += _copies_in(seen, reading, roots, ledger)
    return copies


def _readings(
    names: set[str], idents: dict[str, int] | None, library: Library
) -> dict[tuple[str, int], tuple[Loaded, Reading]]:
    found = {}
    words = [name.encode() for name in names]
    everywhere = library.needs_all(words)
    for name, module, held in each(idents):
        if name.partition(".")[0] in NEVER_READ or "__file__" not in held:
            continue
        # `from consumer import *` names nothing: what the module holds has to give it away.
        starred = False
        for wanted in names:
            value = held.get(wanted, ABSENT)
            if value is None or value is False:
                starred = True
        if starred or everywhere or not library.is_silent(name, id(module)):
            seen = Loaded(name, module, held)
            with suppress(Exception):
                reading = library.search(seen, [b"import"] if starred else words)
                if reading is not None and not seen.is_being_imported():
                    found[name, id(module)] = (seen, reading)
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
