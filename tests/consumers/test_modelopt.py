"""NVIDIA ModelOpt: an import inside the function that catches ModuleNotFoundError only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Child = Callable[..., Any]

LOOK = """
from consumer_facts import STARTED, dense, distance, outcome, server, tell
import torch
from modelopt.torch.quantization.nn import functional

x = torch.randn(6, 384, generator=torch.Generator().manual_seed(0))
# 384 = 3 * 128: ModelOpt rotates blocks of 128.
blocks = dense(x.reshape(6, 3, 128), 128**-0.5).reshape(6, 384)
rotate = functional.normalized_hadamard_transform
def look():
    works = outcome(rotate, x)
    return dict(outcome=works, away=distance(rotate(x), blocks) if works == "works" else None)
"""


@pytest.fixture(autouse=True)
def modelopt(need: Callable[..., None]) -> None:
    need("nvidia-modelopt", "0.47.0")


def test_through_the_start_up_file_it_rotates_trains_and_quantises(started: Child) -> None:
    facts = started(f"""{LOOK}
from modelopt.torch.quantization.config import QuantizerAttributeConfig
from modelopt.torch.quantization.nn import TensorQuantizer

u = x.clone().requires_grad_()
rotate(u).backward(x)

outliers = x[:, :128].clone()
outliers[:, 5] *= 50
def error(rotated, restore):
    quantizer = TensorQuantizer(QuantizerAttributeConfig(num_bits=4, axis=None, rotate=rotated))
    return distance(restore(quantizer(outliers)), outliers)

tell(
    started=STARTED,
    server=server(functional.fast_hadamard_transform),
    backward=distance(u.grad, blocks),
    plain=error(False, lambda y: y),
    rotated=error(True, lambda y: dense(y, 128**-0.5)),
    **look(),
)
""")

    assert facts["started"]
    assert facts["server"] == "stand-in"
    assert facts["outcome"] == "works"
    assert facts["away"] < 1e-6
    assert facts["backward"] < 1e-6
    # What the rotation is for: outliers no longer set the step of the quantiser.
    assert facts["rotated"] < facts["plain"]


def test_without_us_it_raises_and_a_late_activation_is_early_enough(unstarted: Child) -> None:
    facts = unstarted(f"""{LOOK}
before = look()
import hadamard_finder
hadamard_finder.activate()
tell(started=STARTED, before=before, after=look())
""")

    assert not facts["started"]
    assert facts["before"]["outcome"].startswith("ModuleNotFoundError: Package `fast_hadamard_tra")
    assert facts["after"]["outcome"] == "works"
    assert facts["after"]["away"] < 1e-6
