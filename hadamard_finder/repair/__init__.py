"""The sweep: finds modules that missed the package, repairs what is safe and lists the rest."""

from hadamard_finder.repair.record import Leftover, Repair, Sweep
from hadamard_finder.repair.rules import records, sweep, undo

__all__ = ["Leftover", "Repair", "Sweep", "records", "sweep", "undo"]
