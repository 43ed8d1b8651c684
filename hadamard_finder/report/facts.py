"""What ``status`` found, as plain frozen records; ``status.schema.json`` describes their JSON form.

Adding a field leaves SCHEMA as it is; renaming one, removing one or changing what one means
raises it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from hadamard_finder.repair.record import Leftover, Repair

SCHEMA = 1

Source = Literal["real", "stand-in", "foreign", "blocked", "none"]


@dataclass(frozen=True)
class Distribution:
    name: str
    version: str


@dataclass(frozen=True)
class Real:
    """The real package, loaded by a child process without the finder."""

    installed: bool
    distributions: tuple[Distribution, ...]  # all that provide the name, the real one's or not
    copies: tuple[str, ...]  # in the order of sys.path; the first one counts
    location: str | None  # where it is not installed: of a folder that was left behind
    extension: str | None  # the file of fast_hadamard_transform_cuda on sys.path
    unusable_extensions: tuple[str, ...]  # files of it that are for another Python
    version: str | None
    loads: bool | None  # None: not installed, or nobody could be asked
    error_type: str | None
    error: str | None  # where a signal ended it: the last line on its standard error
    signal: str | None  # what ended the child, SIGBUS for one
    timed_out: bool
    seconds: float | None  # the import of the package alone, torch was there already


@dataclass(frozen=True)
class FinderState:
    position: int | None  # on sys.meta_path; None: not active
    ahead: tuple[str, ...]  # the finders that are asked before ours


@dataclass(frozen=True)
class StartupFile:
    path: str
    content: str | None  # None: the file cannot be read
    expected: bool  # the content is the one this version ships
    ran: bool  # by the rules of Python's site module
    why: str  # why it was not run


@dataclass(frozen=True)
class Torch:
    installed: bool
    version: str | None
    backend: str | None  # what the build is for: cpu, cuda, hip, xpu, mps; None: cannot be told
    devices: tuple[str, ...] | None  # None: not asked
    error: str | None


@dataclass(frozen=True)
class Setting:
    name: str
    value: str  # the one in use
    origin: Literal["environment", "default"]
    invalid: str | None  # the value in the environment that is not understood


@dataclass(frozen=True)
class Check:
    property: Literal["values", "involution"]
    device: str
    dtype: str
    result: Literal["passed", "failed", "unsupported"]
    detail: str


@dataclass(frozen=True)
class Consumer:
    """One import of the package in a file of an installed distribution."""

    distribution: str
    version: str
    file: str
    line: int
    statement: str
    when_missing: str  # what that code does where the package is missing


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing: its cause in words, and the next step."""

    code: str
    severity: Literal["error", "note"]  # an error keeps the import from working
    cause: str
    step: str = ""
    command: str = ""  # for a shell, where the step has one


@dataclass(frozen=True)
class Status:
    """What serves ``import fast_hadamard_transform``, and why; ``str()`` is the text for people."""

    schema: int
    version: str  # of hadamard_finder
    python: str
    scope: Literal["this process", "a fresh process"]
    source: Source
    works: bool  # `from fast_hadamard_transform import hadamard_transform` gives what works
    reason: str
    location: str | None  # of what serves the import
    imported: bool  # False: nobody has imported it yet, the source is what an import would give
    active: bool  # whether the finder is on sys.meta_path
    real: Real
    finder: FinderState
    startup: tuple[StartupFile, ...]
    torch: Torch
    algorithm: str
    swept: tuple[Repair, ...]
    leftovers: tuple[Leftover, ...]
    settings: tuple[Setting, ...]
    checks: tuple[Check, ...] | None  # None: not asked
    consumers: tuple[Consumer, ...] | None  # None: not asked
    findings: tuple[Finding, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as what ``json`` writes; tuples become lists there."""
        return asdict(self)

    def __str__(self) -> str:
        from hadamard_finder.report import text  # for people only; programs read the fields

        return text.render(self, colour=False)
