# Runs at every start of every Python here: import only what the interpreter has loaded already.
"""The finder and ``start``: what every Python pays for, and what outlives everything else.

The finder stands first on ``sys.meta_path`` and lets all names but three pass. What an import of
those yields is decided in lookup.py, which is read when one of them is imported.
"""

import os
import sys
from _frozen_importlib import module_from_spec
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
NAMES = frozenset((PACKAGE, INTERFACE, EXTENSION))
_THIS = sys.modules.get(__name__)
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
        if name not in NAMES:
            return None
        if _lookup is None:
            _read_lookup()
        spec: ModuleSpec | None = _lookup and _lookup.find_spec(self, name, path, target)
        return spec


# Not an import: finders run under the global import lock, and an import there, which waits for a
# module that another thread imports, can deadlock for good. So nobody imports that module.
_lookup: "Any" = None


def _read_lookup() -> None:
    global _lookup
    try:
        spec = PathFinder.find_spec("hadamard_finder.lookup", [os.path.dirname(__file__)])
        lookup: Any = module_from_spec(spec)  # type: ignore[arg-type]
        lookup.finder = _THIS
        lookup.__loader__.exec_module(lookup)
        lookup.Guard  # noqa: B018  # its last name: an upgrade may be writing the file
    except Exception:  # uninstalled under a running process: as if we had never been there
        return
    _lookup = lookup


# A class for one object would cost each start of Python 20 microseconds, and so does an import.
_SimpleNamespace: "type[Any]" = type(sys.implementation)
STATE: "State" = globals().get("STATE") or _SimpleNamespace(
    causes={}, missed={}, served={}, loading=0, asking=set(), told=set()
)
