"""The records of a sweep over published consumers that were imported too early."""

from __future__ import annotations

import json
import sys
import sysconfig
from importlib.util import find_spec

import pytest
from support import REPO, run_python

FUNCTION = "fast_hadamard_transform.hadamard_transform"
MODULE = "module fast_hadamard_transform"

CODE = """
import dataclasses, importlib, json
importlib.import_module({home!r})
import hadamard_finder
records = [hadamard_finder.activate(), hadamard_finder.sweep(everything=True)]
hadamard_finder.deactivate()
records.append(hadamard_finder.activate())
print(json.dumps([dataclasses.asdict(sweep) for sweep in records]))
"""


def _sweeps(home: str, top: str) -> list[tuple[list[str], list[str]]]:
    if find_spec(top) is None:
        pytest.skip(f"{top}, whose code the sweep repairs here, is not installed")
    path = [sysconfig.get_path("purelib"), REPO]
    result = run_python(
        CODE.format(home=home),
        flags=["-S"],
        path=path,
        env={"PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"},
        python=sys.executable,
    )
    return [
        (
            sorted(
                f"{r['module']}.{r['name']}: {r['before']} -> {r['after']}" for r in s["repairs"]
            ),
            sorted(f"{item['module']}.{item['name']}" for item in s["leftovers"]),
        )
        for s in json.loads(result.check().out.splitlines()[-1])
    ]


def test_torchao_leaves_its_alias_unbound() -> None:
    home = "torchao.prototype.spinquant.hadamard_utils"
    record = ([f"{home}._fast_hadamard_transform: unbound -> {FUNCTION}"], [])
    assert _sweeps(home, "torchao") == [record] * 3


def test_brevitas_takes_none_for_a_flag() -> None:
    homes = ["brevitas.graph.equalize", "brevitas.graph.hadamard", "brevitas.nn.equalized_layer"]
    left = ([], [f"{home}.fast_hadamard_transform" for home in homes])
    filled = ([f"{home}.fast_hadamard_transform: None -> {MODULE}" for home in homes], [])
    assert _sweeps("brevitas.graph.equalize", "brevitas") == [left, filled, left]


def test_megatron_binds_none() -> None:
    home = "megatron.core.transformer.experimental_attention_variant.dsa"
    record = ([f"{home}.hadamard_transform: None -> {FUNCTION}"], [])
    assert _sweeps(home, "megatron") == [record] * 3
