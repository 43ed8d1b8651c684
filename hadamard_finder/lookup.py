# Runs under the global import lock: import only what is loaded already.
"""Decides what an import of one of our three names yields, and the guard that sees to it.

The finders behind ours are asked first. A guard wraps the loader they found and, where the load
fails, turns the module into the stand-in in place.
"""

import _thread
import sys
from _collections_abc import Sequence
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import PathFinder

# The types are there at run time, for beartype_all() checks this file.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from hadamard_finder import finder
else:
    Any, ModuleType = object, type(sys)
    if "finder" not in globals():  # the finder gives itself; documentation tools import us
        from hadamard_finder import finder


def find_spec(
    asked: object, name: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    """Answer for ``asked``. The finders of other versions call this: keep name and arguments."""
    ours = {key for key in finder.NAMES if finder.is_standin(sys.modules.get(key))}
    if name == finder.INTERFACE:
        # The finder of an editable install goes by full names and would serve the real file.
        return PathFinder.find_spec(name, path) if finder.PACKAGE in ours else None
    if name == finder.EXTENSION and ours & {finder.PACKAGE, finder.INTERFACE}:
        return _standin(name, f"{finder.PACKAGE} is the stand-in")
    # No `off` where plain Python would mix: a reload of ours, or a part of ours still there.
    if finder.switch() == "off" and not ours:
        finder.note_missed()
        return None
    # Some finders ask all of sys.meta_path in turn, us included.
    if (_thread.get_ident(), name) in finder.STATE.asking:
        return None
    if finder.switch() == "force":
        return _standin(name, f"{finder.SWITCH}=force")
    try:
        spec = _ask(_behind(asked), name, path, target)
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


def _behind(asked: object) -> list[Any]:
    # A copy, because finders come and go during the walk. Those ahead of us have been asked.
    finders = list(sys.meta_path)
    ours = [position for position, other in enumerate(finders) if other is asked]
    return finders[ours[0] + 1 :] if ours else finders


def _standin(name: str, cause: str, error: Exception | None = None) -> ModuleSpec | None:
    spec = finder.standin_spec(name) if _torch_is_there() else None
    if spec is not None:
        spec.loader = Guard(spec, None, cause, error)  # type: ignore[assignment]
        return spec
    if error is not None:
        raise error
    # Without torch the caller shall see the plain ModuleNotFoundError.
    finder.note_missed()
    return None


def _ask(
    finders: list[Any], name: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    key = (_thread.get_ident(), name)
    finder.STATE.asking.add(key)
    try:
        for other in finders:
            find_spec = getattr(other, "find_spec", None)
            if find_spec is not None and not finder.is_finder(other):
                spec: ModuleSpec | None = find_spec(name, path, target)
                if spec is not None:
                    return spec
    finally:
        finder.STATE.asking.discard(key)
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

    loader: Any = None  # ends the recursion of __getattr__ on a copy made without __init__

    def __init__(
        self, spec: ModuleSpec, real: Any, cause: str = "", error: Exception | None = None
    ) -> None:
        self.spec = spec
        self.real = real
        self.loader = spec.loader if real is None else real
        self.cause = cause
        self.error = error
        self.previous = sys.modules.get(spec.name)  # the module itself where this is a reload
        # Now, because a reload gives the module the new spec's names first.
        self.before = dict(finder.namespace(self.previous))

    def __getattr__(self, name: str) -> Any:
        # `python -m`, pkgutil and importlib.resources ask a loader for more than a guard has.
        return getattr(self.loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        create = getattr(self.real, "create_module", None)
        try:
            return None if create is None else create(spec)
        except Exception as error:  # an extension is opened here, not in exec_module
            self.error = error
            return None

    def exec_module(self, module: ModuleType) -> None:
        # First, so that neither the real package nor anybody after it meets the guard.
        self.spec.loader = self.loader
        if finder.namespace(module).get("__loader__") is self:
            module.__loader__ = self.loader
        try:
            # Not at the top: where a loader runs, unlike a finder, the global lock is not held.
            from hadamard_finder.takeover import load
        except Exception:  # uninstalled under a running process: as if we had never been there
            if self.real is None or self.error is not None:
                missing = f"No module named {self.spec.name!r}"
                raise self.error or ModuleNotFoundError(missing, name=self.spec.name) from None
            self.real.exec_module(module)
        else:
            load(self, module)
