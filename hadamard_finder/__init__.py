"""Makes ``import fast_hadamard_transform`` work where the real package cannot be built or loaded.

The public names load on first use (PEP 562): this file runs at every start of every Python in the
environment, so it imports nothing, and torch stays unloaded until a transform is asked for.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hadamard_finder.activation import activate, deactivate
    from hadamard_finder.finder import start
    from hadamard_finder.repair import sweep
    from hadamard_finder.report.assembly import status
    from hadamard_finder.transform import fwht

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "activate",
    "deactivate",
    "fwht",
    "start",
    "status",
    "sweep",
]

_HOMES = {
    "activate": "hadamard_finder.activation",
    "deactivate": "hadamard_finder.activation",
    "fwht": "hadamard_finder.transform",
    "start": "hadamard_finder.finder",
    "status": "hadamard_finder.report.assembly",
    "sweep": "hadamard_finder.repair",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(globals().keys() | _HOMES.keys())
