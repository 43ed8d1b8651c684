"""Megatron-LM's DeepSeek sparse attention: ``try: from ... import ... except: ... = None``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import REPO, run

Child = Callable[..., Any]

DSA = "megatron.core.transformer.experimental_attention_variant.dsa"

LOOK = """
from consumer_facts import STARTED, digest, homes, outcome, server, tell
import torch
from megatron.core.transformer.experimental_attention_variant import dsa

x = torch.randn(16, 2, 4, 128, generator=torch.Generator().manual_seed(0)).bfloat16()
def look():
    works = outcome(dsa.rotate_activation, x)
    bits = digest(dsa.rotate_activation(x)) if works == "works" else None
    return dict(server=server(dsa.hadamard_transform), outcome=works, bits=bits)
"""

ROTATE = f"""{LOOK}
from consumer_facts import dense, distance
x.requires_grad_()
gradient = torch.randn(x.shape, generator=torch.Generator().manual_seed(1)).bfloat16()
dsa.rotate_activation(x).backward(gradient)
scale = x.shape[-1] ** -0.5
tell(
    started=STARTED,
    forward=distance(dsa.rotate_activation(x).detach(), dense(x.detach(), scale)),
    backward=distance(x.grad, dense(gradient, scale)),
    **look(),
)
"""

# Two of Megatron's own parts cannot be had on a CPU: Transformer Engine's linear layer, for which
# torch's stands in, and the current CUDA device, on which it would put the rotary embedding.
INDEXER = """
from consumer_facts import STARTED, dense, distance, server, tell
import torch
from megatron.core import parallel_state
from megatron.core.transformer.experimental_attention_variant import dsa
from megatron.core.transformer.torch_norm import WrappedTorchNorm
from megatron.core.transformer.transformer_config import MLATransformerConfig

class Linear(torch.nn.Linear):
    def __init__(self, inputs, outputs, *, bias, **_):
        super().__init__(inputs, outputs, bias=bias)

    def forward(self, x):
        return super().forward(x), None

torch.distributed.init_process_group(
    "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
)
parallel_state.initialize_model_parallel()
torch.cuda.current_device = lambda: "cpu"
torch.manual_seed(0)
tokens, hidden, rank, heads = 64, 64, 32, 4
config = MLATransformerConfig(
    num_layers=1, hidden_size=hidden, num_attention_heads=heads, q_lora_rank=rank,
    kv_lora_rank=rank, qk_head_dim=32, qk_pos_emb_head_dim=16, v_head_dim=32, rope_type="rope",
    bf16=True, params_dtype=torch.bfloat16, use_cpu_initialization=True,
    dsa_indexer_n_heads=heads, dsa_indexer_head_dim=64, dsa_indexer_topk=8,
)
parts = dsa.DSAIndexerSubmodules()
parts.linear_wq_b = parts.linear_wk = parts.linear_weights_proj = Linear
parts.k_norm = WrappedTorchNorm
indexer = dsa.DSAIndexer(config, parts).bfloat16()
x = torch.randn(tokens, 2, hidden).bfloat16().requires_grad_()
qr = torch.randn(tokens, 2, rank).bfloat16().requires_grad_()
query, key = torch.randn(2, tokens, 2, heads, 32).bfloat16()
mask = torch.triu(torch.full((tokens, tokens), float("-inf")), 1)
leaves = dict(indexer.named_parameters(), x=x, qr=qr)

def step(transform):
    dsa.hadamard_transform = transform
    for leaf in leaves.values():
        leaf.grad = None
    scores, chosen = indexer.forward_with_scores(x, qr, mask)
    seen = torch.where(mask == 0, scores, 0).detach()
    loss = dsa.compute_dsa_indexer_loss(
        scores, chosen, query, key, 32**-0.5, 1.0, False, indexer.pg_collection
    )
    loss.backward()
    return dict(scores=seen, **{name: leaf.grad for name, leaf in leaves.items()}), chosen, loss

by = server(dsa.hadamard_transform)
found, chosen, loss = step(dsa.hadamard_transform)
wanted, chosen_by_dense, loss_by_dense = step(dense)
unrotated, _, _ = step(lambda x, scale: x)
unscaled, _, _ = step(lambda x, scale: dense(x))
tell(
    started=STARTED,
    server=by,
    loss=[loss.item(), loss_by_dense.item()],
    same_choice=(chosen == chosen_by_dense).float().mean().item(),
    found={name: distance(found[name], wanted[name]) for name in wanted},
    unrotated={name: distance(unrotated[name], wanted[name]) for name in wanted},
    unscaled={name: distance(unscaled[name], wanted[name]) for name in wanted},
)
"""


@pytest.fixture(autouse=True)
def megatron(need: Callable[..., None]) -> None:
    need("megatron-core", "0.16.1")


def test_through_the_start_up_file_rotate_activation_works(started: Child) -> None:
    facts = started(ROTATE)

    assert facts["started"]
    assert facts["server"] == "stand-in"
    # One rounding to bfloat16 apart at most, on few elements: a relative error of 2^-9 each.
    assert facts["forward"] < 1e-4
    assert facts["backward"] < 1e-4
    assert facts["warnings"] == 1


def test_without_us_it_stops_and_a_late_activation_repairs_it(
    started: Child, unstarted: Child
) -> None:
    facts = unstarted(f"""{LOOK}
before = look()
import hadamard_finder
record = hadamard_finder.activate()
tell(started=STARTED, before=before, after=look(), repaired=homes(record.repairs))
""")

    assert not facts["started"]
    assert facts["before"] == {
        "server": None,
        "outcome": "AssertionError: fast_hadamard_transform is not installed.",
        "bits": None,
    }
    assert facts["after"]["server"] == "stand-in"
    assert facts["repaired"] == [DSA]
    assert facts["after"]["bits"] == started(ROTATE)["bits"]


def test_switched_off_it_is_as_without_us(started: Child) -> None:
    facts = started(f"{LOOK}\ntell(started=STARTED, **look())", HADAMARD_FINDER="off")

    assert facts["started"]
    assert facts["server"] is None
    assert facts["outcome"] == "AssertionError: fast_hadamard_transform is not installed."
    assert facts["warnings"] == 0


def test_indexer_trains_as_with_the_dense_matrix(started: Child) -> None:
    facts = started(INDEXER)

    assert facts["server"] == "stand-in"
    assert facts["loss"][0] == pytest.approx(facts["loss"][1], rel=1e-5)
    assert facts["same_choice"] > 0.99
    assert facts["found"].keys() >= {"scores", "linear_wq_b.weight", "k_norm.bias", "x", "qr"}
    for name, error in facts["found"].items():
        # An orthogonal rotation of q and k cancels in their product: to leave it out changes
        # nothing but roundings. The bound lies well below even that.
        assert error < facts["unrotated"][name] / 4, name
        assert facts["unscaled"][name] > 0.5, name


def test_the_example(tmp_path: Path) -> None:
    result = run([sys.executable, REPO / "examples" / "megatron_dsa.py"], cwd=tmp_path).check()

    assert "standin" in result.out.splitlines()[0]
    assert "gradient agrees too" in result.out
