"""A status as text for people: aligned, on one screen, the next step last."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from hadamard_finder.finder import PACKAGE
from hadamard_finder.report.facts import Status

_INDENT = 14
_WIDTH = 100 - _INDENT
_COLOURS = {"red": "31", "green": "32", "yellow": "33", "bold": "1"}


def render(status: Status, *, colour: bool) -> str:
    """Return the report, without a newline at the end."""
    lines = []
    for label, words in _rows(status):
        if label and colour:
            label = _paint(label.ljust(_INDENT), "bold")
        lines.append(f"{label:<{_INDENT}}{words}".rstrip())
    if colour:
        lines[0] = lines[0].replace(_headline(status), _paint(_headline(status), _mood(status)))
    return "\n".join(lines)


def _paint(words: str, colour: str) -> str:
    return f"\x1b[{_COLOURS[colour]}m{words}\x1b[0m"


def _mood(status: Status) -> str:
    if not status.works:
        return "red"
    return "yellow" if status.source == "foreign" else "green"


def _headline(status: Status) -> str:
    if status.works:
        return status.source
    checked = status.checks is not None and status.source != "none"
    return f"{status.source}: {'it fails the check' if checked else 'the import does not work'}"


def _rows(status: Status) -> Iterator[tuple[str, str]]:
    yield "import", f"{_headline(status)} ({PACKAGE} in {status.scope})"
    yield "because", _one_line(status.reason)
    if status.location:
        yield "from", status.location
    yield "finder", _finder(status)
    label = "start-up"
    for item in status.startup:
        outcome = "run by Python" if item.ran else f"not run: {item.why}"
        yield label, f"{item.path}{'' if item.expected else ' (altered)'}: {outcome}"
        if item.ran:
            yield from (("", f"  {line}") for line in (item.content or "").splitlines())
        label = ""
    if not status.startup:
        yield label, "no start-up file in any site directory"
    yield "real package", _real(status)
    if status.real.error:
        kind = f"{status.real.error_type}: " if status.real.error_type else ""
        yield "", _one_line(f"{kind}{status.real.error}")
    yield "torch", _torch(status)
    label = "settings"
    for setting in status.settings:
        wrong = "" if setting.invalid is None else f"; {setting.invalid!r} is not understood"
        yield label, f"{setting.name}={setting.value} ({setting.origin}{wrong})"
        label = ""
    yield from _checks(status)
    yield from _records(status)
    yield from _consumers(status)
    label = "found"
    for finding in status.findings:
        yield from _wrapped(label, finding.cause)
        label = ""
    label = "next"
    if status.works:
        yield label, "Nothing has to be done: the import works."
        label = ""
    for finding in status.findings:
        yield from _wrapped(label, finding.step)
        if finding.command:
            yield "", f"  {finding.command}"
        label = "" if finding.step else label


def _one_line(words: str) -> str:
    # An error may be a page long; --json has it whole.
    return textwrap.shorten(words, 300, placeholder=" ...")


def _wrapped(label: str, words: str) -> Iterator[tuple[str, str]]:
    # Not inside words: paths are there to be copied.
    for line in textwrap.wrap(words, _WIDTH, break_long_words=False, break_on_hyphens=False):
        yield label, line
        label = ""


def _finder(status: Status) -> str:
    if status.finder.position is None:
        return "not active"
    if not status.finder.ahead:
        return "active, first on sys.meta_path"
    return f"active, behind {', '.join(status.finder.ahead)}"


def _real(status: Status) -> str:
    real = status.real
    if not real.installed:
        return "not installed"
    names = ", ".join(f"{item.name} {item.version}" for item in real.distributions)
    if real.loads is None:
        outcome = "not tried"
    elif real.loads:
        outcome = f"loads in {real.seconds:.1f} s"
    elif real.signal:
        outcome = f"kills the interpreter: {real.signal}"
    else:
        outcome = "hangs" if real.timed_out else "does not load"
    return f"{names or 'without a distribution'}, {real.location}: {outcome}"


def _torch(status: Status) -> str:
    if not status.torch.installed:
        return "not installed"
    devices = "not asked" if status.torch.devices is None else ", ".join(status.torch.devices)
    build = f"{status.torch.backend} build" if status.torch.backend else "unknown build"
    return f"{status.torch.version or 'unknown version'}, {build}; devices: {devices}"


def _records(status: Status) -> Iterator[tuple[str, str]]:
    label = "repaired"
    for repair in status.swept:
        yield label, f"{repair.module}.{repair.name} was {repair.before}, is {repair.after}"
        label = ""
    label = "left alone"
    for leftover in status.leftovers:
        where = f" ({leftover.file}:{leftover.line})" if leftover.file else ""
        yield label, f"{leftover.module}.{leftover.name}: {leftover.reason}{where}"
        label = ""


def _consumers(status: Status) -> Iterator[tuple[str, str]]:
    label = "consumers"
    if status.consumers == ():
        yield label, "no installed distribution imports the package"
    previous = ""
    for item in status.consumers or ():
        if item.distribution != previous:
            yield label, f"{item.distribution} {item.version}"
            label, previous = "", item.distribution
        yield "", f"  {item.file}:{item.line}"
        yield "", f"    {item.statement}; where it is missing: {item.when_missing}"


def _checks(status: Status) -> Iterator[tuple[str, str]]:
    label = "check"
    for device in dict.fromkeys(check.device for check in status.checks or ()):
        results: dict[str, list[str]] = {}
        for check in status.checks or ():
            if check.device == device:
                results.setdefault(check.dtype, []).append(check.result)
        words = [
            f"{dtype} {next((word for word in found if word != 'passed'), 'passed')}"
            for dtype, found in results.items()
        ]
        yield label, f"{device}: {', '.join(words)}"
        label = ""
    for check in status.checks or ():
        if check.result == "failed":
            yield "", f"  {check.property}, {check.device}, {check.dtype}: {check.detail}"
