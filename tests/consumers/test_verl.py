"""verl's own pure-torch shim for Megatron-LM, in every order in which the two of us may come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Child = Callable[..., Any]

DSA = "megatron.core.transformer.experimental_attention_variant.dsa"

LOOK = """
from consumer_facts import STARTED, digest, homes, server, shell, tell
import sys
import torch
from megatron.core.transformer.experimental_attention_variant import dsa

# The package's own __init__ would import Ray and the rest of a training stack.
shell("verl.models.mcore")
from verl.models.mcore import patch

x = torch.randn(16, 2, 4, 128, generator=torch.Generator().manual_seed(0)).bfloat16()
def look():
    package = sys.modules.get("fast_hadamard_transform")
    return dict(
        package=server(package),
        function=server(dsa.hadamard_transform),
        same=package is not None and package.hadamard_transform is dsa.hadamard_transform,
        bits=digest(dsa.rotate_activation(x)) if dsa.hadamard_transform else None,
    )
"""
OURS = {"package": "stand-in", "function": "stand-in", "same": True}
VERLS = {"package": "fast_hadamard_transform", "function": "verl.models.mcore.patch", "same": True}


@pytest.fixture(autouse=True)
def verl(need: Callable[..., None]) -> None:
    need("megatron-core", "0.16.1")
    need("verl", "0.9.1")


def test_ours_first_leaves_verl_nothing_to_do(started: Child) -> None:
    facts = started(f"""{LOOK}
patch.apply_patch()
tell(started=STARTED, **look())
""")

    assert facts["started"]
    assert facts.items() >= OURS.items()


def test_megatron_first_then_ours_then_verl(unstarted: Child) -> None:
    facts = unstarted(f"""{LOOK}
before = look()
import hadamard_finder
record = hadamard_finder.activate()
ours = look()
patch.apply_patch()
tell(started=STARTED, before=before, ours=ours, after=look(), repaired=homes(record.repairs))
""")

    assert not facts["started"]
    assert facts["before"] == {"package": None, "function": None, "same": False, "bits": None}
    # verl's import now succeeds, and it repairs nothing any more: the sweep must have.
    assert facts["repaired"] == [DSA]
    assert facts["ours"].items() >= OURS.items()
    assert facts["after"] == facts["ours"]


def test_verl_first_then_ours_changes_nothing(unstarted: Child, started: Child) -> None:
    facts = unstarted(f"""{LOOK}
patch.apply_fast_hadamard_transform_shim()
verls = look()
import hadamard_finder
record = hadamard_finder.activate()
active = look()
hadamard_finder.deactivate()
tell(verls=verls, active=active, after=look(), repaired=homes(record.repairs))
""")

    # Its module has no __spec__, which is what makes it worth a test.
    assert facts["verls"].items() >= VERLS.items()
    assert facts["active"] == facts["verls"]
    assert facts["after"] == facts["verls"]
    assert facts["repaired"] == []
    assert facts["warnings"] == 0
    # Whichever came first: both claim the CUDA kernel's bits.
    assert facts["verls"]["bits"] == started(f"{LOOK}\ntell(**look())")["bits"]
