"""Which algorithm runs when the caller names none. Imports no torch, so that status can read it."""

from __future__ import annotations

import os
from typing import Literal, TypeGuard, get_args

Algorithm = Literal["butterfly", "matmul", "compiled"]

VARIABLE = "HADAMARD_FINDER_ALGORITHM"
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
DEFAULT: Algorithm = "butterfly"

# The value last looked up, so that a call pays one comparison and a bad value warns once.
_seen: tuple[str, Algorithm] | None = None


def is_algorithm(name: object) -> TypeGuard[Algorithm]:
    return name in ALGORITHMS


def algorithm() -> Algorithm:
    """The algorithm set in HADAMARD_FINDER_ALGORITHM; butterfly where it is unset or unknown.

    An unknown value costs one warning on the logger hadamard_finder.
    """
    global _seen
    value = os.environ.get(VARIABLE, DEFAULT)
    if _seen is None or _seen[0] != value:
        _seen = (value, _chosen(value))
    return _seen[1]


def _chosen(value: str) -> Algorithm:
    name = value.strip().lower()
    if not name:
        return DEFAULT
    if is_algorithm(name):
        return name
    # Imported here: logging costs more than the whole package.
    import logging

    logging.getLogger("hadamard_finder").warning(
        "%s=%r is not an algorithm; using %r. Allowed: %s.",
        VARIABLE,
        value,
        DEFAULT,
        ", ".join(ALGORITHMS),
    )
    return DEFAULT
