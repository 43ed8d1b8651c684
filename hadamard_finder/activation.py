"""``activate`` and ``deactivate``: for processes in which no start-up file ran."""

import importlib
import sys

from hadamard_finder import finder, repair
from hadamard_finder.repair.record import Sweep


def activate() -> Sweep:
    """Start the finder, import ``fast_hadamard_transform`` and repair modules that missed it.

    Returns the record of the sweep: what was repaired and what was left, and why. Does nothing
    where ``HADAMARD_FINDER=off``, and leaves a ``None`` in ``sys.modules`` (a deliberate block) be.
    Calling it again is harmless.

    Raises:
        ImportError: neither the real package nor the stand-in can be imported, because torch is
            missing or broken; the finder stays active.
    """
    finder.start()
    if finder.switch() == "off" or sys.modules.get(finder.PACKAGE, sys) is None:
        return Sweep()
    importlib.import_module(finder.PACKAGE)
    return repair.sweep()


def deactivate() -> None:
    """Take the finder, the stand-in and every repair back.

    The next import of ``fast_hadamard_transform`` behaves as if hadamard_finder had never been
    there. Modules that imported the function by themselves keep it. Calling it again is harmless.
    """
    # A new list: a walk over a shortened one, in another thread's import, would skip a finder.
    sys.meta_path = [item for item in sys.meta_path if not finder.is_finder(item)]
    repair.undo()
    state = finder.STATE
    for name, module in sys.modules.copy().items():
        if finder.is_standin(module):
            sys.modules.pop(name, None)
        elif state.missed.get(name) != id(module):
            # Imported under the finder: a None it holds is its own wish, whoever starts us again.
            state.served[name] = id(module)
    state.causes.clear()
