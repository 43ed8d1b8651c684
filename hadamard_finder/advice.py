"""From what ``status`` found to causes in words and the next step."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Literal

from hadamard_finder import causes
from hadamard_finder.facts import Finding, Status
from hadamard_finder.finder import PACKAGE, SWITCH, SWITCH_VALUES
from hadamard_finder.transform.settings import ALGORITHMS

SLOW = 10.0  # seconds; the real package itself loads in well under one

_REINSTALL_US = "python -m pip install --force-reinstall --no-deps hadamard-finder"

_SIGNALS = {
    "SIGBUS": "its file is shorter than it says; a copy or a download was cut, most likely",
    "SIGILL": "it uses instructions that this processor lacks",
    "SIGSEGV": "it reads memory that is not its own; often it was built for another torch",
    "SIGABRT": "a library in it gives up",
    "SIGKILL": "the system ended it; memory may have run out",
}


def findings(status: Status) -> tuple[Finding, ...]:
    """Return what is worth knowing, what keeps the import from working first."""
    found = [
        *_blocked(status),
        *_torch(status),
        *_off(status),
        *_not_started(status),
        *_real(status),
        *_foreign(status),
        *_checks(status),
        *_unusual(status),
    ]
    return tuple(sorted(found, key=lambda item: item.severity != "error"))


def _blocked(status: Status) -> Iterator[Finding]:
    if status.source == "blocked":
        yield Finding(
            "blocked",
            "error",
            f"sys.modules[{PACKAGE!r}] is None: code that ran before blocks the import on "
            "purpose, and hadamard_finder respects that.",
            f"find and remove that line, or run: del sys.modules[{PACKAGE!r}]",
        )


def _torch(status: Status) -> Iterator[Finding]:
    if status.torch.error:
        yield Finding(
            "torch-broken",
            "error",
            f"torch itself does not import: {status.torch.error}",
            "repair torch first; python -c 'import torch' shows the whole error",
        )
    elif not status.torch.installed:
        yield Finding(
            "torch-missing",
            "error",
            "torch is not installed, and everything that could serve the import needs it.",
            "python -m pip install torch",
        )


def _off(status: Status) -> Iterator[Finding]:
    value = next(item.value for item in status.settings if item.name == SWITCH)
    if value == "off" and not status.works and status.source != "blocked":
        yield Finding(
            "off",
            "error",
            f"{SWITCH}=off turns the stand-in off, and the real package does not serve the import.",
            f"unset {SWITCH}",
        )


def _not_started(status: Status) -> Iterator[Finding]:
    ran = [item for item in status.startup if item.ran]
    altered = next((item for item in ran if not item.expected), None)
    if altered is not None:
        yield Finding(
            "startup-altered",
            "note" if status.active else "error",
            f"The start-up file {altered.path} is not the one this version ships.",
            f"put it back: {_REINSTALL_US}",
        )
    if status.active or altered is not None:
        return
    severity: Literal["error", "note"] = "note" if status.works else "error"
    by_hand = "call hadamard_finder.activate() at the top of your program"
    if sys.flags.no_site:
        code, cause = "startup-no-site", "Python was started with -S, and runs no start-up files."
        step = f"start it without -S, or {by_hand}"
    elif ran:
        code = "startup-without-effect"
        cause = "The start-up file was run, but the finder is not on sys.meta_path."
        step = f"look at what Python says on its start (python -c pass), or {by_hand}"
    elif status.startup:
        code = "startup-not-run"
        cause = f"Python did not run {status.startup[0].path}: {status.startup[0].why[9:]}."
        step = by_hand[0].upper() + by_hand[1:]
    else:
        code = "startup-missing"
        cause = "hadamard_finder can be imported, but its start-up file is in no site directory."
        step = f"{_REINSTALL_US}, or {by_hand}"
    yield Finding(code, severity, cause, step)


def _real(status: Status) -> Iterator[Finding]:
    real = status.real
    fatal = status.source == "none" and (status.real.signal or status.real.timed_out)
    severity: Literal["error", "note"] = "error" if fatal else "note"
    if real.signal:
        why = _SIGNALS.get(real.signal, "its code ends the process")
        yield Finding(
            "crash",
            severity,
            f"Loading the real package ends the interpreter ({real.signal}): {why}. "
            "No Python code can catch that.",
            f"set {SWITCH}=force, and the stand-in serves the import without touching the real "
            f"package; or install that again: {causes.REBUILD}",
        )
    elif real.timed_out:
        yield Finding(
            "hang",
            severity,
            "Loading the real package did not end within the time limit of this report.",
            f"set {SWITCH}=force, and the stand-in serves the import without touching the real "
            "package; or give the report more time: python -m hadamard_finder status --timeout 300",
        )
    elif real.loads is False:
        yield causes.of_failed_load(status)
    elif real.loads and (real.seconds or 0) > SLOW:
        yield Finding(
            "slow",
            "note",
            f"Loading the real package takes {real.seconds:.0f} s, torch not counted.",
            "move it to a faster disk, or look at its start: python -X importtime",
        )
    if status.source == "real" and status.torch.devices == ("cpu",):
        yield Finding(
            "no-gpu",
            "note",
            "The real package loads, but torch sees no GPU here, and it computes on GPUs only: "
            "tensors on the CPU raise an error.",
            f"to compute on the CPU, set {SWITCH}=force",
        )
    if len(real.copies) > 1:
        yield Finding(
            "two-copies",
            "note",
            f"{len(real.copies)} copies of {PACKAGE} are on sys.path; only the first one counts, "
            f"and it hides {', '.join(real.copies[1:])}.",
            "remove all but one; python -m pip list shows what pip installed",
        )


def _foreign(status: Status) -> Iterator[Finding]:
    if status.source != "foreign":
        return
    yield Finding(
        "foreign",
        "note" if status.works else "error",
        "Neither the real package nor the stand-in answers to the name, but another project's "
        f"module: {status.location or 'made in memory, without a file'}.",
        f"python -m hadamard_finder status --check shows whether it computes right; to use the "
        f"stand-in instead, set {SWITCH}=force or remove that module",
    )


def _checks(status: Status) -> Iterator[Finding]:
    failed = [check for check in status.checks or () if check.result == "failed"]
    if failed:
        where = sorted({f"{check.device} {check.dtype}" for check in failed})
        step = f"set {SWITCH}=force to use the stand-in"
        if status.source == "stand-in":
            step = "please report this, with the output of: python -m hadamard_finder status --json"
        yield Finding(
            "wrong-values",
            "error",
            f"The transform in place gives wrong results ({', '.join(where)}).",
            step,
        )
    elif status.checks is not None and not status.works:
        yield Finding(
            "unchecked",
            "error",
            "The check could not be completed on any device that this machine has.",
            "run it on a machine with a GPU, or set " + f"{SWITCH}=force",
        )


def _unusual(status: Status) -> Iterator[Finding]:
    allowed = {SWITCH: SWITCH_VALUES}
    for setting in status.settings:
        if setting.invalid is not None:
            values = ", ".join(allowed.get(setting.name, ALGORITHMS))
            yield Finding(
                "setting-unknown",
                "note",
                f"{setting.name}={setting.invalid!r} is not understood; {setting.value} is used.",
                f"set it to one of: {values}",
            )
    if status.leftovers:
        yield Finding(
            "leftovers",
            "note",
            f"{len(status.leftovers)} modules missed the package, and repairing them is not safe "
            "to do unasked.",
            "start Python with the start-up file in place, or call "
            "hadamard_finder.sweep(everything=True)",
        )
