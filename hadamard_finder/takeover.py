"""Runs the real loader and, where it fails, makes the module the stand-in in place.

Loaded by the guard when one of the two names is imported, never at start-up. A module is wholly
real or wholly the stand-in when ``load`` returns, and what it was before when ``load`` raises.
"""

import contextlib
import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType

from hadamard_finder.finder import (
    EXTENSION,
    MARKER,
    PACKAGE,
    STATE,
    SWITCH,
    SWITCH_VALUES,
    is_empty,
    is_standin,
    namespace,
    note_missed,
    standin_spec,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hadamard_finder.lookup import Guard
else:
    Guard = object  # the finder reads that file, nobody imports it; and beartype wants a type

# What the import system itself keeps on a module; everything else belongs to its source.
_IDENTITY = {
    "__builtins__",
    "__cached__",
    "__file__",
    "__loader__",
    "__name__",
    "__package__",
    "__path__",
    "__spec__",
}
# Not loader_state: importlib.util.LazyLoader keeps its own there until the load is over.
_SPEC_FIELDS = ("loader", "origin", "submodule_search_locations", "has_location", "cached")


def load(guard: Guard, module: ModuleType) -> None:
    """Execute ``module`` for ``guard``. The finders of other versions call this: keep the name.

    Raises: what the real package raised, where the stand-in cannot load either or where a reload
    of the real package failed; ModuleNotFoundError where there was no real package.
    """
    name = guard.spec.name
    before = _Snapshot(guard, module)
    STATE.loading += 1
    try:
        cause = _execute(guard, module, before)
    except BaseException:
        before.restore()
        raise
    finally:
        STATE.loading -= 1
    if cause is None:
        STATE.causes.pop(name, None)
    else:
        STATE.causes[name] = cause
    _tell(name, cause)


def _execute(guard: Guard, module: ModuleType, before: "_Snapshot") -> str | None:
    """Return why the module is the stand-in; None where it is the real one."""
    error = guard.error
    if guard.real is not None and error is None:
        error = _failure_of_real(guard, module, before)
        if error is None:
            return None
    if module is guard.previous and not before.is_standin:
        # A real package whose reload fails is still real in the hands of all who imported it.
        if error is not None:
            raise error
        package = sys.modules.get(PACKAGE)
        if guard.spec.name == EXTENSION and namespace(package) and not is_standin(package):
            raise ImportError(f"{guard.cause}, but {PACKAGE} is real: reload that", name=EXTENSION)
    failure = _failure_of_standin(guard.spec, module, before)
    if failure is not None:
        note_missed()
        raise error or failure
    # The text only: the error itself would keep every frame of the failed import alive.
    return guard.cause if error is None else _describe(error)


def _failure_of_real(guard: Guard, module: ModuleType, before: "_Snapshot") -> Exception | None:
    name = guard.spec.name
    # A real package that met our extension or our submodules would end half real.
    for key in before.standins:
        sys.modules.pop(key, None)
    if before.is_standin:
        _wipe(module)
    try:
        guard.real.exec_module(module)
    except Exception as error:
        return error
    if name == PACKAGE and is_standin(sys.modules.get(EXTENSION)):
        return ImportError(f"{EXTENSION} does not load: {STATE.causes.get(EXTENSION)}", name=name)
    # The package may have failed while another thread was opening this.
    if name == EXTENSION and is_standin(sys.modules.get(PACKAGE)):
        return ImportError(f"{PACKAGE} is the stand-in", name=name)
    if sys.modules.get(name) is module and type(module) is ModuleType and is_empty(module):
        return ImportError(f"{name} loads but is empty: {guard.spec.origin}", name=name)
    return None


def _failure_of_standin(
    spec: ModuleSpec, module: ModuleType, before: "_Snapshot"
) -> ModuleNotFoundError | None:
    missing = f"No module named {spec.name!r}"
    standin = standin_spec(spec.name)
    if standin is None or standin.loader is None:  # uninstalled under a running process
        return ModuleNotFoundError(missing, name=spec.name)
    # In place: threads that wait for this import hold this spec and will get this module.
    for field in _SPEC_FIELDS:
        setattr(spec, field, getattr(standin, field))
    _wipe(module)
    # Before the purge: from here on nobody gets, or finishes loading, a real extension.
    namespace(module)[MARKER] = True
    _purge(spec.name, module)
    before.put_back_standins()
    _set_identity(module, spec)
    if before.registered:
        sys.modules[spec.name] = module
    try:
        standin.loader.exec_module(module)
        # A thread that the real package started may have gone on importing meanwhile.
        if _purge(spec.name, module):
            standin.loader.exec_module(module)
    except Exception as error:
        # A consumer's `except ImportError` must catch what a broken torch raises, an OSError often.
        text = f"{missing}, and its stand-in does not load: {_describe(error)}"
        failure = ModuleNotFoundError(text, name=spec.name)
        failure.__cause__ = error
        return failure
    return None


def _describe(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # somebody's __str__ is broken, too
        return type(error).__name__


class _Snapshot:
    """What a load may change: the module's names, its spec, the modules that belong to it."""

    def __init__(self, guard: Guard, module: ModuleType) -> None:
        spec = guard.spec
        self.spec = spec
        self.module = module
        self.fields = {field: getattr(spec, field) for field in _SPEC_FIELDS}
        self.names = guard.before if module is guard.previous else dict(namespace(module))
        self.family = _family(spec.name)
        self.standins = {key: part for key, part in self.family.items() if is_standin(part)}
        self.is_standin = is_standin(module)
        self.registered = sys.modules.get(spec.name) is module

    def put_back_standins(self) -> None:
        for key, part in self.standins.items():
            sys.modules[key] = part
            if key.startswith(f"{self.spec.name}."):
                setattr(self.module, key.rpartition(".")[2], part)

    def restore(self) -> None:
        for field, value in self.fields.items():
            setattr(self.spec, field, value)
        for key in _family(self.spec.name).keys() - self.family.keys():
            sys.modules.pop(key, None)
        sys.modules.update(self.family)
        if self.registered:
            sys.modules[self.spec.name] = self.module
        names = namespace(self.module)
        for name in names.keys() - self.names.keys():
            del names[name]
        names.update(self.names)


def _family(name: str) -> dict[str, ModuleType]:
    """Return the loaded modules that belong to ``name``; the extension belongs to the package."""
    heads = (f"{PACKAGE}.", f"{EXTENSION}.") if name == PACKAGE else (f"{name}.",)
    return {
        key: part
        for key, part in sys.modules.copy().items()
        # The cheap test first: a process has thousands of modules, and a load asks six times.
        if isinstance(key, str)
        and PACKAGE in key
        and (
            key.startswith(heads)
            # Another thread may be loading it: without its entry that import ends in a KeyError.
            # Its guard sees to it that it ends as the package did.
            or (key == EXTENSION and name == PACKAGE and not _is_loading(part))
        )
    }


def _is_loading(module: ModuleType) -> bool:
    spec = namespace(module).get("__spec__")
    return getattr(spec, "_initializing", False) is True


def _purge(name: str, module: ModuleType) -> bool:
    """Remove what belongs to ``name`` and is not ours, but no None: that is a user's block."""
    names = namespace(module)
    purged = False
    for key, part in _family(name).items():
        if part is not None and not is_standin(part):
            sys.modules.pop(key, None)
            child = key.rpartition(".")[2]
            if names.get(child) is part:
                del names[child]
            purged = True
    return purged


def _wipe(module: ModuleType) -> None:
    # Name by name: another thread may read __spec__ at any moment to see whether we are done.
    names = namespace(module)
    for name in names.keys() - _IDENTITY:
        names.pop(name, None)


def _set_identity(module: ModuleType, spec: ModuleSpec) -> None:
    names = namespace(module)
    # All of it: a failed attempt may have spoilt its own __name__ or __spec__.
    names.update(
        __name__=spec.name,
        __spec__=spec,
        __file__=spec.origin,
        __cached__=spec.cached,
        __loader__=spec.loader,
        __package__=spec.parent,
    )
    names.pop("__path__", None)
    if spec.submodule_search_locations is not None:
        names["__path__"] = spec.submodule_search_locations


def unknown_switch() -> str:
    """The value of HADAMARD_FINDER where it is none of those we know, else an empty string."""
    value = os.environ.get(SWITCH, "")
    return "" if value.strip().lower() in ("", *SWITCH_VALUES) else value


def _tell(name: str, cause: str | None) -> None:
    wrong = unknown_switch()
    if cause is None and not wrong:
        return

    def report() -> None:
        from hadamard_finder import notice

        notice.report(name, cause, wrong)

    def sweep() -> None:
        from hadamard_finder import repair

        repair.run()

    _try(report)
    if name == PACKAGE and cause is not None:
        _try(sweep)


def _try(action: Callable[[], None]) -> None:
    # The module is ready: a failing log handler or sweep must not take its import down.
    try:
        action()
    except Exception as error:
        with contextlib.suppress(Exception):  # under pythonw there is no stderr
            sys.stderr.write(f"hadamard_finder: {_describe(error)}\n")
