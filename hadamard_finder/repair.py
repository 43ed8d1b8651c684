"""The sweep."""

import sys
from dataclasses import dataclass

from hadamard_finder.finder import PACKAGE, STATE, namespace


@dataclass(frozen=True)
class Sweep:
    repairs: tuple[str, ...] = ()
    leftovers: tuple[str, ...] = ()


def sweep(*, everything: bool = False) -> Sweep:
    """Repair modules that missed the package."""
    function = namespace(sys.modules.get(PACKAGE)).get("hadamard_transform")
    done = []
    for name, ident in STATE.missed.items():
        module = sys.modules.get(name)
        names = namespace(module)
        if id(module) == ident and names.get("hadamard_transform", 0) is None:
            names["hadamard_transform"] = function
            done.append(name)
    return Sweep(tuple(done))


def undo() -> None:
    """Take the repairs back."""
