"""vLLM's way to switch us on: the entry point that it calls in each of its processes."""

import sys
from contextlib import suppress

from hadamard_finder import activation, finder


def register() -> None:
    """Activate the finder where no start-up file has: a ``--target`` folder, an embedded Python.

    Where one has, nothing can have missed the package, and few models ask for it: nothing is
    imported and nothing said. Calling it again is harmless, and it never raises, because vLLM
    would not start then. A torch that is missing or broken speaks up at the import that needs it.
    """
    if not any(finder.is_finder(item) for item in sys.meta_path):
        with suppress(Exception):
            activation.activate()
