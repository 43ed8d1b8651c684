"""Runs in a child process: imports the package and writes down what happened, step by step.

Each step is one line of JSON, written at once: where an import kills the interpreter or hangs, the
parent still knows how far it came.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from hadamard_finder.finder import (
    EXTENSION,
    INTERFACE,
    PACKAGE,
    STATE,
    is_empty,
    is_finder,
    is_standin,
    namespace,
)

TORCH_STAGE = "the import of torch"
Tell = Callable[..., None]  # takes facts by keyword


def main(*, check: bool, only_if_found: bool) -> None:
    """Tell all that can be told; ``only_if_found`` ends where no finder knows the package."""
    _leave_no_core_file()
    # What the package prints while it loads must not end up between our lines.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)

        def tell(**facts: Any) -> None:
            answers.write(json.dumps(facts) + "\n")
            answers.flush()

        tell(finders=finder_names(), position=position())
        if sys.modules.get(PACKAGE, sys) is None:
            tell(kind="blocked", done=True)
            return
        if not _find(tell) and only_if_found:
            tell(loads=False, done=True)
            return
        tell(stage=TORCH_STAGE)
        _import_torch(tell)
        tell(stage=f"the import of {PACKAGE}")
        import_package(tell)
        tell(stage="the count of devices")
        tell(devices=devices())
        if check:
            tell(stage="the check")
            run_checks(tell)
        tell(done=True)


def _leave_no_core_file() -> None:
    """A crash is what we may be here to see, and with torch loaded its core file is gigabytes."""
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def position() -> int | None:
    """Return where our finder stands on sys.meta_path; None where it is not."""
    found = [place for place, item in enumerate(list(sys.meta_path)) if is_finder(item)]
    return found[0] if found else None


def finder_names() -> list[str]:
    """Return the classes of the finders on sys.meta_path, in order."""
    kinds = [item if isinstance(item, type) else type(item) for item in list(sys.meta_path)]
    return [f"{kind.__module__}.{kind.__qualname__}" for kind in kinds]


def kind_of(module: object) -> str:
    """Tell the real package from the stand-in and from a stub that another project put there."""
    if module is None:
        return "blocked"
    if is_standin(module):
        return "stand-in"
    # The real package comes with its extension, a port of it at least with the interface; no stub
    # that was met has either.
    parts = [part for part in map(sys.modules.get, (EXTENSION, INTERFACE)) if part is not None]
    if namespace(module).get("__spec__") is None or not parts or any(map(is_standin, parts)):
        return "foreign"
    return "real"


def location_of(module: object) -> str | None:
    names = namespace(module)
    file = names.get("__file__")
    if file is None and names.get("__path__"):
        file = next(iter(names["__path__"]), None)
    return None if file is None else str(file)


def _find(tell: Tell) -> bool:
    if PACKAGE in sys.modules:  # a start-up file of somebody else put it there
        return True
    try:
        spec = importlib.util.find_spec(PACKAGE)
    except Exception:  # an editable install whose rebuild fails, for one; the import will tell
        tell(found=True)
        return True
    folders = list(spec.submodule_search_locations or []) if spec else []
    tell(
        found=spec is not None,
        folder_only=spec is not None and spec.loader is None,
        location=spec and (spec.origin or (folders[0] if folders else None)),
    )
    return spec is not None


def _import_torch(tell: Tell) -> None:
    try:
        if importlib.util.find_spec("torch") is None:
            return
        import torch  # noqa: F401  # first, as consumers do; the package's own time is then its own
    except Exception as error:
        tell(torch_error=f"{type(error).__name__}: {_text(error)}")


def import_package(tell: Tell) -> None:
    """Do what consumers do, and tell what came of it."""
    started = time.perf_counter()
    try:
        from fast_hadamard_transform import hadamard_transform
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        tell(loads=False, error_type=type(error).__name__, error=_text(error))
        module = sys.modules.get(PACKAGE)
        if module is not None and namespace(module).get("__spec__") is None:
            tell(kind="foreign", location=location_of(module))
        return
    seconds = time.perf_counter() - started
    module = sys.modules[PACKAGE]
    extension = sys.modules.get(EXTENSION)
    if not callable(hadamard_transform):
        tell(loads=False, error_type="TypeError", error=f"it is {hadamard_transform!r}")
    elif extension is not None and is_empty(extension):
        # A folder left behind counts as a module; the first call would fail.
        text = f"{EXTENSION} has no functions: {location_of(extension)}"
        tell(loads=False, error_type="ImportError", error=text)
    else:
        version = namespace(module).get("__version__")
        tell(
            kind=kind_of(module),
            loads=True,
            location=location_of(module),
            version=version if isinstance(version, str) else None,
            cause=STATE.causes.get(PACKAGE),
            seconds=round(seconds, 3),
        )


def run_checks(tell: Tell) -> None:
    """Check the transform that is in place here, and tell each result as it comes."""
    done: list[dict[str, Any]] = []
    tell(checks=done)
    module = sys.modules.get(PACKAGE)
    function = namespace(module).get("hadamard_transform")
    if not callable(function) or "torch" not in sys.modules:
        return
    from hadamard_finder.report import check

    for item in check.run(function, kind_of(module), devices() or ()):
        done.append(asdict(item))
        tell(checks=done)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


def devices() -> list[str] | None:
    """Return the devices of the torch that is loaded; None where none is."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    found = ["cpu"]
    for kind in ("cuda", "xpu", "mps"):
        count = getattr(getattr(torch, kind, None), "device_count", None)
        try:
            found += [f"{kind}:{index}" for index in range(count() if count else 0)]
        except Exception:  # a driver that fails to answer offers no device
            continue
    return found
