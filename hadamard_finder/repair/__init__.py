"""The sweep: finds modules that missed the package, repairs what is safe and lists the rest."""

from hadamard_finder.repair.rules import records, run, sweep, undo

__all__ = ["records", "run", "sweep", "undo"]
