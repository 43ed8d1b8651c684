"""torchao's SpinQuant: an alias that stays unbound where the import fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Child = Callable[..., Any]

HOME = "torchao.prototype.spinquant.hadamard_utils"

LOOK = f"""
from consumer_facts import STARTED, dense, digest, distance, homes, outcome, server, tell
import torch
import {HOME} as home

op = torch.ops.torchao.hadamard_transform
x = torch.randn(6, 256, generator=torch.Generator().manual_seed(0))
def look():
    works = outcome(op, x, 0.125)
    bits = digest(op(x, 0.125)) if works == "works" else None
    return dict(
        outcome=works, bits=bits, server=server(getattr(home, "_fast_hadamard_transform", None))
    )
"""


@pytest.fixture(autouse=True)
def torchao(need: Callable[..., None]) -> None:
    need("torchao", "0.18.0")


def test_through_the_start_up_file_its_operator_works(started: Child) -> None:
    facts = started(f"""{LOOK}
u = x.clone().requires_grad_()
gradient = torch.randn(x.shape, generator=torch.Generator().manual_seed(1))
home.HadamardTransform.apply(u).backward(gradient)
checks = torch.library.opcheck(op.default, (x, 0.125))
fast = home.matmul_hadU_fast(x, *home.get_hadK(256))
wide = torch.randn(6, 12 * 16)
tell(
    started=STARTED,
    forward=distance(op(x, 0.125), dense(x, 0.125)),
    backward=distance(u.grad, dense(gradient)),
    checks=checks,
    fast=distance(fast, home.matmul_hadU_slow(x, *home.get_hadK(256))),
    twelve=distance(
        home.matmul_hadU_fast(wide, *home.get_hadK(192)),
        home.matmul_hadU_slow(wide, *home.get_hadK(192)),
    ),
    **look(),
)
""")

    assert facts["started"]
    assert facts["server"] == "stand-in"
    assert facts["forward"] < 1e-6
    assert facts["backward"] < 1e-6
    assert facts["fast"] < 1e-6
    assert facts["twelve"] < 1e-6
    assert set(facts["checks"].values()) == {"SUCCESS"}


def test_without_us_it_fails_and_a_late_activation_binds_the_name(
    started: Child, unstarted: Child
) -> None:
    facts = unstarted(f"""{LOOK}
before = look()
import hadamard_finder
record = hadamard_finder.activate()
tell(started=STARTED, before=before, after=look(), repaired=homes(record.repairs))
""")

    assert not facts["started"]
    assert facts["before"]["server"] is None
    missing = "NameError: name '_fast_hadamard_transform' is not defined"
    assert facts["before"]["outcome"] == missing
    assert facts["repaired"] == [HOME]
    assert facts["after"]["server"] == "stand-in"
    assert facts["after"]["bits"] == started(f"{LOOK}\ntell(**look())")["bits"]
