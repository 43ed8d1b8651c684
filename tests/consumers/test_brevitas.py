"""Brevitas: the module itself, or None as the flag for kernels of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Child = Callable[..., Any]

HOMES = ["brevitas.graph.hadamard", "brevitas.graph.equalize", "brevitas.nn.equalized_layer"]

# The path for GPUs, called with CPU tensors: what Brevitas picks by itself there is its own code.
LOOK = f"""
from consumer_facts import STARTED, distance, homes, outcome, server, tell
import importlib
import torch

places = [importlib.import_module(name) for name in {HOMES}]
own = places[0]
x = torch.randn(6, 24 * 8, generator=torch.Generator().manual_seed(0))
def call(width):
    return own.matmul_hadU_cuda(x[:, :width], *own.get_hadK(width))

def look():
    servers = [server(place.fast_hadamard_transform) for place in places]
    return dict(servers=servers, outcome=outcome(call, 64))
"""
NONE = "AttributeError: 'NoneType' object has no attribute 'hadamard_transform'"


@pytest.fixture(autouse=True)
def brevitas(need: Callable[..., None]) -> None:
    need("brevitas", "0.13.4")


def test_through_the_start_up_file_the_fast_path_equals_its_own(started: Child) -> None:
    facts = started(f"""{LOOK}
tell(
    started=STARTED,
    power_of_two=distance(call(64), own.matmul_hadU(x[:, :64])),
    multiple_of_twelve=distance(call(192), own.matmul_hadU(x)),
    **look(),
)
""")

    assert facts["started"]
    assert facts["servers"] == ["stand-in"] * 3
    assert facts["outcome"] == "works"
    assert facts["power_of_two"] < 1e-6
    assert facts["multiple_of_twelve"] < 1e-6


def test_without_us_it_is_none_and_a_late_repair_is_made_on_request_only(unstarted: Child) -> None:
    facts = unstarted(f"""{LOOK}
before = look()
import hadamard_finder
record = hadamard_finder.activate()
activated = look()
hadamard_finder.sweep(everything=True)
left = homes(record.leftovers)
tell(started=STARTED, before=before, activated=activated, asked=look(), left=left)
""")

    assert not facts["started"]
    assert facts["before"] == {"servers": [None] * 3, "outcome": NONE}
    # None switches Brevitas to its own kernels: no business of ours, unless the user says so.
    assert facts["activated"] == facts["before"]
    assert facts["left"] == sorted(HOMES)
    assert facts["asked"] == {"servers": ["stand-in"] * 3, "outcome": "works"}
