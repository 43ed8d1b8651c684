"""What the sweeps of this process have filled in, and how to take it back."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from hadamard_finder.finder import namespace
from hadamard_finder.repair.loaded import ABSENT, Loaded

if TYPE_CHECKING:
    from hadamard_finder.repair.record import Repair

_BEFORE = {"None": None, "False": False}


class _Entry:  # no NamedTuple: one takes 200 microseconds to define
    def __init__(self, module: Any, spec: object, value: object, repair: Repair) -> None:
        self.module = weakref.ref(module)  # a record shall keep no module alive
        self.spec = spec  # after a reload another: then what the name holds is the module's doing
        self.value = value
        self.repair = repair

    def names(self) -> dict[str, Any]:
        """Return the dict of the module as it was filled; {} where that one is no more."""
        names = namespace(self.module())
        return names if names.get("__spec__") is self.spec else {}


class Ledger:
    """Entries by module and name. Without a lock: of two equal repairs the second is no news."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], _Entry] = {}

    def has(self, seen: Loaded, name: str) -> bool:
        """Whether that very module's name was filled before, whatever it holds now."""
        entry = self._entries.get((seen.name, name))
        return entry is not None and entry.names() is seen.names

    def fill(self, seen: Loaded, name: str, value: object, after: str, line: int | None) -> None:
        from hadamard_finder.repair.record import Repair

        before = seen.state(name)
        repair = Repair(seen.name, name, before, after, seen.file, line)
        seen.names[name] = value
        spec = seen.names.get("__spec__")
        self._entries[seen.name, name] = _Entry(seen.module, spec, value, repair)

    def repairs(self) -> tuple[Repair, ...]:
        return tuple(entry.repair for entry in list(self._entries.values()))

    def undo(self) -> None:
        """Take every repair back whose value is still there, and forget them all."""
        entries = list(self._entries.values())
        self._entries.clear()
        for entry in entries:
            names, repair = entry.names(), entry.repair
            if names.get(repair.name, ABSENT) is not entry.value:
                continue  # the module has gone, or somebody has set another value since
            if repair.before == "unbound":
                names.pop(repair.name, None)
            else:
                names[repair.name] = _BEFORE[repair.before]
