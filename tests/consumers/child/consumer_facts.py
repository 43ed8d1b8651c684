"""What the children of the consumer tests share. They import it before anything else."""

import hashlib
import importlib.util
import json
import sys
import types
from typing import Any

import torch
from torch import Tensor

# True only where a start-up file ran: neither torch nor the standard library imports us.
STARTED = "hadamard_finder.finder" in sys.modules


def dense(x: Tensor, scale: float = 1.0) -> Tensor:
    """The transform as a product with Sylvester's matrix, in float64, rounded once."""
    matrix = torch.ones(1, 1, dtype=torch.float64)
    while len(matrix) < x.shape[-1]:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return (x.double() @ matrix * scale).to(x.dtype)


def distance(found: Tensor, wanted: Tensor) -> float:
    """The norm of the difference, relative to what was wanted."""
    difference = (found.double() - wanted.double()).norm()
    return (difference / wanted.double().norm()).item()


def digest(x: Tensor) -> str:
    """Equal for tensors that agree in every bit."""
    raw = x.detach().contiguous().view(torch.uint8).numpy().tobytes()
    return hashlib.sha256(raw).hexdigest()


def server(thing: object) -> str | None:
    """Who provides a function or a module: "stand-in", None for None, else a module's name."""
    if thing is None:
        return None
    name = thing.__name__ if isinstance(thing, types.ModuleType) else thing.__module__
    module = sys.modules[name]
    return "stand-in" if vars(module).get("__hadamard_finder__") else name


def outcome(function: Any, *arguments: Any) -> str:
    """What a call comes to: "works", or the name and text of its error."""
    try:
        function(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "works"


def homes(entries: Any) -> list[str]:
    """The modules that a sweep's repairs or leftovers name."""
    return sorted({entry.module for entry in entries})


def shell(name: str) -> None:
    """Make a package importable without running its ``__init__``, nor those of its parents.

    What lies in it can then be imported without what the whole distribution depends on.
    """
    parts = name.split(".")
    spec = importlib.util.find_spec(parts[0])
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = spec.submodule_search_locations[0]
    for end in range(1, len(parts) + 1):
        module = types.ModuleType(".".join(parts[:end]))
        module.__path__ = ["/".join([folder, *parts[1:end]])]
        sys.modules[module.__name__] = module


def tell(**facts: Any) -> None:
    print(json.dumps(facts))
