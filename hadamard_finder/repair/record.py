"""What a sweep reports: strings and numbers only, so that a record keeps no module alive."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Repair:
    """A name that a sweep filled.

    before is "None", "False" or "unbound"; after says in words what is there now. line is that of
    the statement that missed the package; file and line are None where no source tells.
    """

    module: str
    name: str
    before: str
    after: str
    file: str | None
    line: int | None


@dataclass(frozen=True)
class Leftover:
    """A name that missed the package and that the sweep must not touch, and what to do about it."""

    module: str
    name: str
    reason: str
    advice: str
    file: str | None
    line: int | None


@dataclass(frozen=True)
class Sweep:
    """What the sweeps of this process have repaired and left, in the order of the imports."""

    repairs: tuple[Repair, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
