"""A loaded module as a sweep sees it: through its own dict, so that nothing lazy wakes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NamedTuple

from hadamard_finder.finder import namespace

ABSENT = object()
# namespace() for the common case, at a third of its price: a sweep passes thousands of modules.
_dict_of: Callable[[ModuleType], dict[str, Any]] = vars(ModuleType)["__dict__"].__get__


class Loaded(NamedTuple):
    name: str
    module: Any
    names: dict[str, Any]

    @property
    def file(self) -> str | None:
        path = self.names.get("__file__")
        return path if isinstance(path, str) else None

    def state(self, name: str) -> str:
        """Return "None", "False" or "unbound"; "" where the name holds anything else."""
        value = self.names.get(name, ABSENT)
        if value is ABSENT:
            # Of another type, or with a __getattr__, it may offer the name without holding it.
            plain = type(self.module) is ModuleType and "__getattr__" not in self.names
            return "unbound" if plain else ""
        return str(value) if value is None or value is False else ""

    def lacks(self, name: str) -> bool:
        value = self.names.get(name)
        return value is None or value is False

    def is_being_imported(self) -> bool:
        spec = self.names.get("__spec__")
        return issubclass(type(spec), ModuleSpec) and bool(getattr(spec, "_initializing", False))

    def has_passed(self, line: int) -> bool:
        """Whether its body has run beyond that line; a script may be running still."""
        for top in sys._current_frames().values():
            frame = top
            while frame is not None:
                if frame.f_globals is self.names and frame.f_code.co_name == "<module>":
                    return frame.f_lineno > line
                frame = frame.f_back  # type: ignore[assignment]
        return True

    def absolute(self, level: int, module: str) -> str:
        """Return the name that ``from <level dots><module> import ...`` means in this module."""
        if level == 0:
            return module
        package = self.names.get("__package__")
        if not isinstance(package, str):
            package = self.name if "__path__" in self.names else self.name.rpartition(".")[0]
        parts = package.split(".")
        return ".".join([*parts[: len(parts) - level + 1], *filter(None, [module])])


def each(idents: dict[str, int] | None = None) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield name, module and dict of all modules, or only of those that still have the ids given.

    Plain tuples: few of the thousands are worth a Loaded.
    """
    modules = sys.modules.copy()  # other threads go on importing
    for name in modules if idents is None else idents:
        module = modules.get(name)
        if isinstance(name, str) and (idents is None or id(module) == idents[name]):
            names = _dict_of(module) if type(module) is ModuleType else namespace(module)
            if names:
                yield name, module, names
