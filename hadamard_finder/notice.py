"""The one warning of a process: that the stand-in took over, why, and how to silence it."""

import logging
import os

from hadamard_finder.finder import STATE, SWITCH, SWITCH_VALUES
from hadamard_finder.transform import settings

_LOG = logging.getLogger("hadamard_finder")
_EXACTNESS = {
    "butterfly": "Results match the CUDA kernel bit for bit",
    "compiled": "Results match the CUDA kernel bit for bit",
    "matmul": "Results may differ from the CUDA kernel's in the last bit (algorithm matmul)",
}


def report(name: str, cause: str | None, unknown: str) -> None:
    """Say what an import of ``name`` came to; ``cause`` is None where the real one loaded.

    ``unknown`` is a value of HADAMARD_FINDER that has no meaning, or empty.
    """
    if unknown and "switch" not in STATE.told:
        STATE.told.add("switch")
        allowed = ", ".join(SWITCH_VALUES)
        _LOG.warning("%s=%r is unknown, auto is used; allowed: %s", SWITCH, unknown, allowed)
    # While the package loads, its extension does not speak: the package does, with the cause.
    if cause is None or "stand-in" in STATE.told or STATE.loading:
        return
    STATE.told.add("stand-in")
    _LOG.log(
        logging.WARNING if _speaks_for_all() else logging.DEBUG,
        "%s is served by hadamard_finder's pure-torch stand-in: %s. %s; it is slower. "
        "`python -m hadamard_finder status` explains; to silence this: "
        "logging.getLogger('hadamard_finder').setLevel(logging.ERROR)",
        name,
        cause,
        _EXACTNESS[settings.algorithm()],
    )


def _speaks_for_all() -> bool:
    """Whether this is rank 0, or no rank at all: one line for a whole job is enough."""
    rank = os.environ.get("RANK") or os.environ.get("LOCAL_RANK") or "0"
    return rank.strip() in ("", "0")
