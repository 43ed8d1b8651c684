# Runs at every start of every Python here: import only what the interpreter has loaded already.
"""The finder, the guard and ``start``: they decide what ``import fast_hadamard_transform`` yields.

The finder stands first on ``sys.meta_path`` and asks those behind it. A guard wraps the loader they
found and, where the load fails, turns the module into the stand-in in place.
"""

import _thread
import os
import sys
from _frozen_importlib_external import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Protocol, TypeGuard

    class State(Protocol):
        """What must outlive a finder, and a reload of this file."""

        causes: dict[str, str]  # why a name is served by the stand-in
        missed: dict[str, int]  # name -> id: modules that may have missed the package
        served: dict[str, int]  # name -> id: modules imported while a finder was active
        loading: int  # loads that are running now; the extension's is nested in the package's
        asking: set[tuple[int, str]]  # (thread, name) of walks that are under way
        told: set[str]  # warnings given: one of a kind in a process


PACKAGE = "fast_hadamard_transform"
INTERFACE = "fast_hadamard_transform.fast_hadamard_transform_interface"
EXTENSION = "fast_hadamard_transform_cuda"
SWITCH = "HADAMARD_FINDER"
SWITCH_VALUES = ("auto", "off", "force")
MARKER = "__hadamard_finder__"
_NAMES = frozenset((PACKAGE, INTERFACE, EXTENSION))
_MODULE_TYPE: "type[Any]" = type(sys)


def namespace(module: object) -> "dict[str, Any]":
    """Return a module's own dict without waking a lazy module; {} for anything that is no module.

    ``module.__dict__`` is an attribute access, which makes transformers' and apipkg's modules load.
    """
    if not issubclass(type(module), _MODULE_TYPE):
        return {}
    found: dict[str, Any] | None = _MODULE_TYPE.__dict__["__dict__"].__get__(module)
    return {} if found is None else found


def is_standin(module: object) -> "TypeGuard[ModuleType]":
    return namespace(module).get(MARKER) is True


def is_finder(finder: object) -> bool:
    # By marker, not by class: reload(finder) and a second copy of this package make new classes.
    return getattr(type(finder), MARKER, None) is True


def switch() -> str:
    # Read at each import, not at start-up: a script may set it before the import that matters.
    value = os.environ.get(SWITCH, "").strip().lower()
    return value if value in SWITCH_VALUES else "auto"


def standin_spec(name: str) -> "ModuleSpec | None":
    spec = PathFinder.find_spec(name, [os.path.join(os.path.dirname(__file__), "standin")])
    # Without a loader it is but a folder that an uninstall left behind.
    return None if spec is None or spec.loader is None else spec


def is_empty(module: object) -> bool:
    names = namespace(module)
    return "__getattr__" not in names and all(str(name)[:1] == "_" for name in list(names))


def note_missed() -> None:
    modules = sys.modules.copy()
    missed = dict(zip(modules, map(id, modules.values()), strict=True))
    for name, number in STATE.served.items():
        if missed.get(name) == number:
            del missed[name]
    # The interpreter makes __main__ before site runs; empty, it has tried nothing yet.
    if is_empty(modules.get("__main__")):
        missed.pop("__main__", None)
    STATE.missed.update(missed)


def start() -> None:
    """Put the finder first on ``sys.meta_path``; does nothing where one is there already.

    Start-up files of every version call it by this name, without arguments. It never raises.
    """
    try:
        if True not in map(is_finder, sys.meta_path):
            note_missed()
            sys.meta_path.insert(0, Finder())
    except Exception:  # a broken sys.meta_path is not ours to report at every start of Python
        pass


class Finder:
    __hadamard_finder__ = True

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        if name not in _NAMES:
            return None
        # No import in here: finders run under the global import lock, where one can deadlock.
        ours = {key for key in _NAMES if is_standin(sys.modules.get(key))}
        if name == INTERFACE:
            # The finder of an editable install goes by full names and would serve the real file.
            return PathFinder.find_spec(name, path) if PACKAGE in ours else None
        if name == EXTENSION and ours & {PACKAGE, INTERFACE}:
            return _standin(name, f"{PACKAGE} is the stand-in")
        # No `off` where plain Python would mix: a reload of ours, or a part of ours still there.
        if switch() == "off" and not ours:
            note_missed()
            return None
        # Some finders ask all of sys.meta_path in turn, us included.
        if (_thread.get_ident(), name) in STATE.asking:
            return None
        if switch() == "force":
            return _standin(name, f"{SWITCH}=force")
        try:
            spec = _ask(self._behind(), name, path, target)
        except Exception as error:  # an editable install whose rebuild fails, for one
            return _standin(name, "", error)
        if spec is None:
            return _standin(name, f"{name} is not installed")
        if spec.loader is None:
            where = ", ".join(spec.submodule_search_locations or ())
            return _standin(name, f"only a folder without __init__.py is there: {where}")
        if hasattr(spec.loader, "exec_module"):
            # A finder that keeps its specs may hand us the one we wrapped before.
            real = spec.loader.real if isinstance(spec.loader, Guard) else spec.loader
            spec.loader = Guard(spec, real)  # type: ignore[assignment]
        return spec

    def _behind(self) -> "list[Any]":
        # A copy, because finders come and go during the walk. Those ahead of us have been asked.
        finders = list(sys.meta_path)
        ours = [position for position, finder in enumerate(finders) if finder is self]
        return finders[ours[0] + 1 :] if ours else finders


def _standin(name: str, cause: str, error: Exception | None = None) -> "ModuleSpec | None":
    spec = standin_spec(name) if _torch_is_there() else None
    if spec is not None:
        spec.loader = Guard(spec, None, cause, error)  # type: ignore[assignment]
        return spec
    if error is not None:
        raise error
    # Without torch the caller shall see the plain ModuleNotFoundError.
    note_missed()
    return None


def _ask(
    finders: "list[Any]", name: str, path: "Sequence[str] | None", target: "ModuleType | None"
) -> "ModuleSpec | None":
    key = (_thread.get_ident(), name)
    STATE.asking.add(key)
    try:
        for finder in finders:
            find_spec = getattr(finder, "find_spec", None)
            if find_spec is not None and not is_finder(finder):
                spec: ModuleSpec | None = find_spec(name, path, target)
                if spec is not None:
                    return spec
    finally:
        STATE.asking.discard(key)
    return None


def _torch_is_there() -> bool:
    if "torch" in sys.modules:
        return sys.modules["torch"] is not None
    try:
        spec = _ask(list(sys.meta_path), "torch", None, None)
    except Exception:  # the stand-in will meet that error and report it better than we could
        return True
    return spec is not None and spec.loader is not None


class Guard:  # no importlib.abc.Loader: that costs a cold start 26 ms, and nothing asks for it
    """A loader that runs the real one and, where that fails, makes the module the stand-in.

    ``real`` is None where there is nothing to run; ``error`` is what a finder raised, if one did.
    """

    loader: "Any" = None  # ends the recursion of __getattr__ on a copy made without __init__

    def __init__(
        self, spec: "ModuleSpec", real: "Any", cause: str = "", error: Exception | None = None
    ) -> None:
        self.spec = spec
        self.real = real
        self.loader = spec.loader if real is None else real
        self.cause = cause
        self.error = error
        self.previous = sys.modules.get(spec.name)  # the module itself where this is a reload
        self.before = dict(namespace(self.previous))  # a reload gives it the new spec's names first

    def __getattr__(self, name: str) -> "Any":
        # `python -m`, pkgutil and importlib.resources ask a loader for more than a guard has.
        return getattr(self.loader, name)

    def create_module(self, spec: "ModuleSpec") -> "ModuleType | None":
        create = getattr(self.real, "create_module", None)
        try:
            return None if create is None else create(spec)
        except Exception as error:  # an extension is opened here, not in exec_module
            self.error = error
            return None

    def exec_module(self, module: "ModuleType") -> None:
        # First, so that neither the real package nor anybody after it meets the guard.
        self.spec.loader = self.loader
        if namespace(module).get("__loader__") is self:
            module.__loader__ = self.loader
        try:
            # Not at the top: no start of Python shall pay for what few processes need.
            from hadamard_finder import takeover
        except Exception:  # uninstalled under a running process: as if we had never been there
            if self.real is None or self.error is not None:
                missing = f"No module named {self.spec.name!r}"
                raise self.error or ModuleNotFoundError(missing, name=self.spec.name) from None
            self.real.exec_module(module)
        else:
            takeover.load(self, module)


# A class for one object would cost each start of Python 20 microseconds, and so does an import.
_SimpleNamespace: "type[Any]" = type(sys.implementation)
STATE: "State" = globals().get("STATE") or _SimpleNamespace(
    causes={}, missed={}, served={}, loading=0, asking=set(), told=set()
)
