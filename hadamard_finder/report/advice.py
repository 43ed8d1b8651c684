"""From what ``status`` found to causes in words and the next step."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Literal

from hadamard_finder.finder import PACKAGE, SWITCH, SWITCH_VALUES
from hadamard_finder.report import causes
from hadamard_finder.report.facts import Finding, Status
from hadamard_finder.transform.settings import ALGORITHMS

SLOW = 10.0  # seconds; the package itself loads in well under one

_STATUS = "python -m hadamard_finder status"
_AGAIN = "install hadamard-finder again from where it came (pip's --force-reinstall --no-deps)"
_BY_HAND = "call hadamard_finder.activate() at the top of your program"
_FORCE = (
    "Install the package again, or let the stand-in serve the import, which leaves the package "
    "untouched:"
)
_SET_FORCE = f"export {SWITCH}=force"
_SIGNALS = {
    "SIGBUS": "its file is shorter than it says, most likely cut by a copy or a download",
    "SIGILL": "it uses instructions that this processor lacks",
    "SIGSEGV": "it reads memory that is not its own, most likely because it was built for another "
    "torch",
    "SIGABRT": "a library in it gives up",
    "SIGKILL": "the system ended it, most likely for want of memory",
}


def findings(status: Status) -> tuple[Finding, ...]:
    """Return what is worth knowing; what keeps the import from working comes first."""
    found = [
        *_blocked(status),
        *_torch(status),
        *_off(status),
        *_startup(status),
        *_ended(status),
        *_real(status),
        *_foreign(status),
        *_checks(status),
        *_settings(status),
        *_leftovers(status),
    ]
    return tuple(sorted(found, key=lambda item: item.severity != "error"))


def _severity(status: Status) -> Literal["error", "note"]:
    return "note" if status.works else "error"


def _blocked(status: Status) -> Iterator[Finding]:
    if status.source == "blocked":
        yield Finding(
            "blocked",
            "error",
            f"sys.modules[{PACKAGE!r}] is None: code that ran before blocks the import on "
            "purpose, and hadamard_finder respects that.",
            "Find and remove the line that put it there.",
        )


def _torch(status: Status) -> Iterator[Finding]:
    if status.torch.error:
        yield Finding(
            "torch-broken",
            _severity(status),
            f"torch itself does not import: {status.torch.error}",
            "Repair torch first; the whole error:",
            "python -c 'import torch'",
        )
    elif not status.torch.installed:
        yield Finding(
            "torch-missing",
            _severity(status),
            "torch is not installed, and both the real package and the stand-in need it.",
            "Install torch:",
            "python -m pip install torch",
        )


def _off(status: Status) -> Iterator[Finding]:
    off = any(item.name == SWITCH and item.value == "off" for item in status.settings)
    if off and status.source == "none":
        yield Finding(
            "off",
            "error",
            f"{SWITCH}=off turns the stand-in off, and the real package does not serve the import.",
            "Let the stand-in serve it:",
            f"unset {SWITCH}",
        )


def _startup(status: Status) -> Iterator[Finding]:
    altered = [item for item in status.startup if item.ran and not item.expected]
    for item in altered:
        yield Finding(
            "startup-altered",
            "note" if status.active else _severity(status),
            f"The start-up file {item.path} is not the one that this version ships.",
            f"To put it back, {_AGAIN}.",
        )
    if status.active or altered or (status.works and status.source != "real"):
        return
    # Python before 3.15 does not know .start files, so the want of one explains nothing there.
    files = [item for item in status.startup if item.path.endswith(".pth") or _knows_start_files()]
    command = ""
    if sys.flags.no_site:
        code, cause = "startup-no-site", "Python was started with -S, and runs no start-up file."
        step = f"Start Python without -S, or {_BY_HAND}."
    elif any(item.ran for item in files):
        code = "startup-without-effect"
        cause = "The start-up file was run, but the finder is not on sys.meta_path."
        step = f"See whether Python reports an error as it starts, or {_BY_HAND}:"
        command = "python -c pass"
    elif files:
        code, cause = "startup-not-run", f"{files[0].path} was not run: {files[0].why}."
        step = f"{_BY_HAND[0].upper()}{_BY_HAND[1:]}."
    else:
        code = "startup-missing"
        cause = "The start-up file of hadamard_finder is in no site directory."
        step = f"{_AGAIN[0].upper()}{_AGAIN[1:]}, or {_BY_HAND}."
    yield Finding(code, _severity(status), cause, step, command)


def _knows_start_files() -> bool:
    return sys.version_info >= (3, 15)


def _ended(status: Status) -> Iterator[Finding]:
    """What happened to the child that loaded the real package, and took no exception's way."""
    real = status.real
    if real.signal:
        why = _SIGNALS.get(real.signal, "its code ends the process")
        yield Finding(
            "crash",
            _severity(status),
            f"Loading the real package ends Python ({real.signal}): {why}. No Python code can "
            "catch that.",
            _FORCE,
            _SET_FORCE,
        )
    elif real.timed_out:
        yield Finding(
            "hang",
            _severity(status),
            "Loading the real package did not end within the time limit of this report.",
            _FORCE,
            _SET_FORCE,
        )
    elif real.loads and (real.seconds or 0) > SLOW:
        yield Finding(
            "slow",
            "note",
            f"Loading the real package takes {real.seconds:.0f} s, torch not counted.",
            "See which import takes long:",
            f"python -X importtime -c 'import {PACKAGE}'",
        )


def _real(status: Status) -> Iterator[Finding]:
    real = status.real
    if real.loads is False and not real.signal and not real.timed_out and not status.torch.error:
        yield causes.of_failed_load(status)
    if not real.installed and real.location:
        yield Finding(
            "leftover-folder",
            "note",
            f"Only a folder without __init__.py is left of the package: {real.location}.",
            "If it is what an uninstall left behind, remove it.",
        )
    if status.source == "real" and status.torch.devices == ("cpu",):
        yield Finding(
            "no-gpu",
            "note",
            "The real package loads, but torch sees no GPU here. It computes on GPUs only: a "
            "tensor on the CPU raises an error.",
            "To compute on the CPU, let the stand-in serve the import:",
            _SET_FORCE,
        )
    if len(real.copies) > 1:
        yield Finding(
            "two-copies",
            "note",
            f"{len(real.copies)} copies of the package are on sys.path. The first one counts, and "
            f"hides {', '.join(real.copies[1:])}.",
            "Remove all copies of the package but one.",
        )


def _foreign(status: Status) -> Iterator[Finding]:
    if status.source != "foreign":
        return
    here = status.scope == "this process"
    ask = "hadamard_finder.status(check=True)" if here else f"{_STATUS} --check"
    yield Finding(
        "foreign",
        _severity(status),
        "Another project's module has the name, neither the real package nor the stand-in: "
        f"{status.location or 'made in memory, without a file'}.",
        "" if status.checks else "See whether it computes the transform:",
        "" if status.checks else ask,
    )


def _checks(status: Status) -> Iterator[Finding]:
    checks = status.checks or ()
    failed: dict[str, list[str]] = {}
    for item in checks:
        if item.result == "failed":
            failed.setdefault(f"{item.property} on {item.device} in", []).append(item.dtype)
    if failed:
        where = [f"{place} {', '.join(dtypes)}" for place, dtypes in failed.items()]
        cause = f"The transform in place is wrong: {'; '.join(where)}."
        if status.source == "stand-in":
            step, command = "Please report this, with the output of:", f"{_STATUS} --check --json"
        elif status.location is None:
            # What is in sys.modules already is never looked for again, by no finder.
            step, command = "Find and remove the code that puts that module there.", ""
        else:
            step, command = "Let the stand-in serve the import instead:", _SET_FORCE
        yield Finding("wrong-values", "error", cause, step, command)
    elif status.checks is not None and not status.works and status.source != "none":
        refused = checks and all(item.result == "unsupported" for item in checks)
        yield Finding(
            "unchecked",
            "error",
            "The transform in place runs on no device of this machine."
            if refused
            else f"The check was not completed: {status.reason}.",
            "Check it where it shall run, or let the stand-in serve the import:",
            _SET_FORCE,
        )


def _settings(status: Status) -> Iterator[Finding]:
    for setting in status.settings:
        if setting.invalid is not None:
            allowed = SWITCH_VALUES if setting.name == SWITCH else ALGORITHMS
            yield Finding(
                "setting-unknown",
                "note",
                f"{setting.name}={setting.invalid!r} is not understood; {setting.value} is used.",
                f"Set it to one of: {', '.join(allowed)}.",
            )


def _leftovers(status: Status) -> Iterator[Finding]:
    for step in dict.fromkeys(item.advice for item in status.leftovers):
        names = [f"{item.module}.{item.name}" for item in status.leftovers if item.advice == step]
        yield Finding(
            "leftovers",
            "note",
            f"Imported too early, and not safe to change unasked: {', '.join(names)}.",
            step,
        )
