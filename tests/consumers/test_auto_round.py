"""AutoRound: the module, or None as the flag for its own code, and weights in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Child = Callable[..., Any]

HOME = "auto_round.algorithms.transforms.hadamard.inplace.hooks"

# Its packages' __init__ files would import Transformers, Accelerate and Datasets.
LOOK = f"""
from consumer_facts import STARTED, dense, distance, homes, server, shell, tell
import torch

shell("{HOME.rpartition(".")[0]}")
import {HOME} as hooks

weight = torch.randn(32, 64, generator=torch.Generator().manual_seed(0))
def rotated(use_fast_had):
    linear = torch.nn.Linear(64, 32, bias=False)
    linear.weight.data = weight.clone()
    # Converts to float64, which the real package refuses.
    hooks.apply_exact_had_to_linear(linear, use_fast_had=use_fast_had)
    return linear.weight.data

def look():
    return dict(
        server=server(hooks.fast_hadamard_transform),
        fast=distance(rotated(True), dense(weight, 64**-0.5)),
        own=distance(rotated(False), dense(weight, 64**-0.5)),
        input=distance(
            hooks.FullOnlineHadamardHook(None, 1)(None, (weight,))[0], dense(weight, 64**-0.5)
        ),
    )
"""


@pytest.fixture(autouse=True)
def auto_round(need: Callable[..., None]) -> None:
    need("auto-round", "0.16.1")


def test_through_the_start_up_file_it_rotates_as_its_own_code_does(started: Child) -> None:
    facts = started(f"{LOOK}\ntell(started=STARTED, **look())")

    assert facts["started"]
    assert facts["server"] == "stand-in"
    assert facts["fast"] < 1e-7
    assert facts["own"] < 1e-7
    assert facts["input"] < 1e-6


def test_without_us_it_uses_its_own_code_and_a_late_activation_leaves_it_so(
    unstarted: Child,
) -> None:
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
    assert facts["before"]["server"] is None
    assert facts["before"]["fast"] < 1e-7
    assert facts["activated"] == facts["before"]
    assert facts["left"] == [HOME]
    assert facts["asked"]["server"] == "stand-in"
    assert facts["asked"]["fast"] < 1e-7
