"""Transformers' HIGGS: a cached ``find_spec``, then an import guarded by what it said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Child = Callable[..., Any]

LOOK = """
from consumer_facts import STARTED, dense, outcome, server, tell
import sys
import torch
from transformers.integrations import higgs
from transformers.utils import is_hadamard_available

weight = torch.randn(8, 512, generator=torch.Generator().manual_seed(0))
def quantize():
    # The packing that follows the rotation needs FLUTE, a CUDA package: take what it would get.
    taken = {}
    def keep(codes, scales, grid, **_):
        taken.update(codes=codes, scales=scales, grid=grid)
        raise StopIteration
    higgs.prepare_data_transposed = keep
    try:
        higgs.quantize_with_higgs(weight, bits=4, p=2, group_size=256, hadamard_size=256)
    except StopIteration:
        pass
    return taken

def look():
    return dict(
        available=is_hadamard_available(),
        server=server(getattr(higgs, "hadamard_transform", None)),
        outcome=outcome(quantize),
    )
"""
UNBOUND = "NameError: name 'hadamard_transform' is not defined"


@pytest.fixture(autouse=True)
def transformers(need: Callable[..., None]) -> None:
    need("transformers", "5.23.0")


def test_through_the_start_up_file_it_is_available_and_rotates(started: Child) -> None:
    facts = started(f"""{LOOK}
taken = quantize()
rotated = taken["grid"][taken["codes"].long()].reshape(8, 2, 256)
scales = taken["scales"].reshape(8, 2, 1)
restored = dense(rotated * scales, 256**-0.5).reshape(8, 512)
error = (restored - weight).norm() / weight.norm()
tell(started=STARTED, error=error.item(), **look())
""")

    assert facts["started"]
    assert facts["available"] is True
    assert facts["server"] == "stand-in"
    assert facts["outcome"] == "works"
    # Four bits a weight; without the inverse rotation nothing of the weight would come back.
    assert facts["error"] < 0.1


def test_without_us_it_is_not_and_a_late_activation_says_what_to_do(unstarted: Child) -> None:
    facts = unstarted(f"""{LOOK}
import importlib
before = look()
import hadamard_finder
(leftover,) = hadamard_finder.activate().leftovers
activated = look()
is_hadamard_available.cache_clear()
importlib.reload(higgs)
tell(started=STARTED, before=before, activated=activated, advised=look(), advice=leftover.advice)
""")

    assert not facts["started"]
    assert facts["before"] == {"available": False, "server": None, "outcome": UNBOUND}
    # Its answer is cached, and the name was never tried: nothing that a sweep may touch.
    assert facts["activated"] == facts["before"]
    assert "is_hadamard_available.cache_clear()" in facts["advice"]
    assert facts["advised"] == {"available": True, "server": "stand-in", "outcome": "works"}


def test_activation_before_its_first_look_is_early_enough(unstarted: Child) -> None:
    facts = unstarted(f"""
import hadamard_finder
hadamard_finder.activate()
{LOOK}
tell(**look())
""")

    assert facts["available"] is True
    assert facts["server"] == "stand-in"
    assert facts["outcome"] == "works"
