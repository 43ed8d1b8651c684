"""``status``: puts together what would serve ``import fast_hadamard_transform``, and why."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import replace
from typing import Any, Literal

from hadamard_finder import __version__, repair
from hadamard_finder.finder import (
    PACKAGE,
    STATE,
    SWITCH,
    namespace,
    switch,
)
from hadamard_finder.report import advice, child, installed, startup_files
from hadamard_finder.report.facts import (
    SCHEMA,
    Check,
    FinderState,
    Real,
    Setting,
    Source,
    Status,
)
from hadamard_finder.report.probe import Probe
from hadamard_finder.takeover import unknown_switch
from hadamard_finder.transform import settings as algorithms


def status(*, check: bool = False, timeout: float = 60.0) -> Status:
    """Report what serves ``import fast_hadamard_transform`` in this process, and why.

    Imports nothing here unless ``check`` is set, which imports the package and runs the transform
    on every device. The real package is loaded by a child process, which gets ``timeout`` seconds.
    """
    with Probe(switch="off", path=sys.path) as real_probe:
        facts: dict[str, Any] = {"finders": child.finder_names(), "position": child.position()}
        if check and PACKAGE not in sys.modules:
            child.import_package(facts.update)
        imported = PACKAGE in sys.modules
        if imported:
            _look(facts)
        real = real_probe.answer(timeout)
    if "loads" not in facts:
        _predict(facts, real)
    facts.update({key: real.get(key) for key in ("devices", "torch_error")})
    if check:
        child.run_checks(facts.update)
    return _assemble("this process", facts, real, imported=imported)


def fresh(*, check: bool, timeout: float) -> Status:
    """Report the same for a new Python in this environment; never imports torch in this one."""
    # Both at once, for each may have to import torch.
    with Probe(switch="off", only_if_found=True) as real_probe, Probe(check=check) as probe:
        facts, real = probe.answer(timeout), real_probe.answer(timeout)
    return _assemble("a fresh process", facts, real)


def _look(facts: dict[str, Any]) -> None:
    module = sys.modules[PACKAGE]
    function = namespace(module).get("hadamard_transform")
    facts.update(kind=child.kind_of(module), loads=callable(function), error_type="TypeError")
    facts["error"] = f"hadamard_transform is {function!r} there"
    facts.update(location=child.location_of(module), cause=STATE.causes.get(PACKAGE))


def _predict(facts: dict[str, Any], real: dict[str, Any]) -> None:
    """Say what an import would give here, from what it gave in a child without the finder."""
    mode = "off" if facts["position"] is None else switch()
    if mode == "off" or (mode == "auto" and (real.get("loads") or "loads" not in real)):
        facts.update({**real, "finders": facts["finders"], "position": facts["position"]})
    elif not installed.torch(None, None).installed or _torch_error(real):
        text = _torch_error(real) or "No module named 'torch'"
        facts.update(loads=False, error_type="ModuleNotFoundError", error=text)
    else:
        cause = f"{SWITCH}=force" if mode == "force" else _why_not_real(real)
        facts.update(kind="stand-in", loads=True, cause=cause)


def _why_not_real(real: dict[str, Any]) -> str:
    if real.get("folder_only"):
        return f"only a folder without __init__.py is there: {real.get('location')}"
    if not real.get("found"):
        return f"{PACKAGE} is not installed"
    return f"{real.get('error_type')}: {real.get('error')}"


def _assemble(
    scope: Literal["this process", "a fresh process"],
    facts: dict[str, Any],
    real: dict[str, Any],
    *,
    imported: bool = False,
) -> Status:
    devices = facts.get("devices")
    checks = None if "checks" not in facts else tuple(Check(**item) for item in facts["checks"])
    position = facts.get("position")
    ahead = tuple(facts.get("finders", ())[: position or 0])
    records = repair.records()
    report = Status(
        schema=SCHEMA,
        version=__version__,
        python=platform.python_version(),
        scope=scope,
        source=_source(facts),
        works=_works(facts, checks),
        reason=_reason(facts),
        location=facts.get("location") if facts.get("loads") else None,
        imported=imported,
        active=position is not None,
        real=_real(real),
        finder=FinderState(position, ahead),
        startup=startup_files.read(),
        torch=installed.torch(None if devices is None else tuple(devices), _torch_error(facts)),
        algorithm=_algorithm().value,
        swept=records.repairs,
        leftovers=records.leftovers,
        settings=(_switch(), _algorithm()),
        checks=checks,
        consumers=None,
        findings=(),
    )
    return replace(report, findings=advice.findings(report))


def _source(facts: dict[str, Any]) -> Source:
    kind = facts.get("kind")
    if kind == "blocked" or kind == "foreign" or (facts.get("loads") and kind):
        source: Source = kind
        return source
    return "none"


def _works(facts: dict[str, Any], checks: tuple[Check, ...] | None) -> bool:
    if not facts.get("loads"):
        return False
    if checks is None:
        return True
    results = {check.result for check in checks}
    ended = facts.get("signal") or facts.get("timed_out")
    return "passed" in results and "failed" not in results and not ended


def _reason(facts: dict[str, Any]) -> str:
    kind = facts.get("kind")
    if kind == "blocked":
        return f"sys.modules[{PACKAGE!r}] is None: somebody blocks the import on purpose"
    if facts.get("signal"):
        return f"{facts.get('stage', 'the start of Python')} is ended by {facts['signal']}"
    if facts.get("timed_out"):
        return f"{facts.get('stage', 'the start of Python')} did not end in time"
    if not facts.get("loads"):
        return f"{facts.get('error_type')}: {facts.get('error')}"
    if kind == "stand-in":
        return str(facts.get("cause"))
    if kind == "foreign":
        where = facts.get("location") or "made in memory, without a file"
        return f"another project's module answers to the name: {where}"
    return "the real package loads"


def _real(facts: dict[str, Any]) -> Real:
    foreign = facts.get("kind") == "foreign"
    copies = installed.copies()
    found = bool(facts.get("found", copies)) and not facts.get("folder_only") and not foreign
    # Not where torch was still being imported, nor where the devices were being counted.
    loading = "loads" not in facts and facts.get("stage") != child.TORCH_STAGE
    ended = facts["signal"] if loading else None
    hangs = bool(facts["timed_out"] and loading)
    providers = installed.distributions()
    loads = False if ended or hangs else facts.get("loads")
    version = facts.get("version") or next((item.version for item in providers), None)
    return Real(
        installed=found,
        distributions=providers,
        copies=copies,
        location=None if foreign else facts.get("location") or next(iter(copies), None),
        extension=installed.extension(),
        unusable_extensions=installed.unusable_extensions(),
        version=version if found else None,
        loads=loads if found else None,
        error_type=facts.get("error_type") if found else None,
        error=facts.get("error") if found else None,
        signal=ended,
        timed_out=hangs,
        seconds=facts.get("seconds"),
    )


def _torch_error(facts: dict[str, Any]) -> str | None:
    if facts.get("stage") == child.TORCH_STAGE and facts.get("signal"):
        return f"the import of torch is ended by {facts['signal']}"
    error: str | None = facts.get("torch_error")
    return error


def _switch() -> Setting:
    value = switch()
    wrong = unknown_switch()
    given = os.environ.get(SWITCH, "").strip()
    return Setting(
        SWITCH, value, "environment" if given and not wrong else "default", wrong or None
    )


def _algorithm() -> Setting:
    # Not settings.algorithm(): that warns of a bad value, and this report names it anyway.
    given = os.environ.get(algorithms.VARIABLE, "")
    name = given.strip().lower()
    known = algorithms.is_algorithm(name)
    return Setting(
        algorithms.VARIABLE,
        name if known else algorithms.DEFAULT,
        "environment" if known else "default",
        given if name and not known else None,
    )
