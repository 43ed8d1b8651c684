"""The fast Walsh-Hadamard transform. Importing this package loads no torch; using it does."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hadamard_finder.transform.surface import fwht

__all__ = ["fwht"]


def __getattr__(name: str) -> object:
    if name != "fwht":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hadamard_finder.transform import surface

    globals()[name] = surface.fwht
    return surface.fwht


def __dir__() -> list[str]:
    return sorted(globals().keys() | set(__all__))
