"""A consumer bound None before hadamard_finder was active; activate() repairs it.

Needs torch and hadamard_finder, nothing else: python examples/late_activation.py

What to expect: the name that was None is repaired by activate(); the name for the module and the
flag are listed as left, and sweep(everything=True) repairs them too.
"""

import os
import sys
import tempfile
from pathlib import Path

import torch

import hadamard_finder
from hadamard_finder.repair.record import Sweep

# What Megatron-LM, Brevitas and TensorRT-LLM do, each in its own way.
CONSUMER = """
try:
    from fast_hadamard_transform import hadamard_transform
except ImportError:
    hadamard_transform = None

try:
    import fast_hadamard_transform as fht
    HAS_FAST_HADAMARD = True
except ImportError:
    fht = None
    HAS_FAST_HADAMARD = False
"""


def show(title: str, sweep: Sweep) -> None:
    print(title)
    for repair in sweep.repairs:
        print(f"  repaired  {repair.name}: {repair.before} -> {repair.after}")
    for left in sweep.leftovers:
        print(f"  left      {left.name} (line {left.line}): {left.reason}")


with tempfile.TemporaryDirectory() as folder:
    Path(folder, "consumer.py").write_text(CONSUMER, encoding="utf-8")
    sys.path.insert(0, folder)

    # With "off" it is as if hadamard_finder were not there: a process in which no start-up file
    # ran, or in which the consumer was imported before anybody could call activate().
    os.environ["HADAMARD_FINDER"] = "off"
    import consumer

    del os.environ["HADAMARD_FINDER"]
    print("consumer.hadamard_transform after its import:", consumer.hadamard_transform)

    show("activate():", hadamard_finder.activate())
    x = torch.ones(4, device="cuda" if torch.cuda.is_available() else "cpu")
    print("transform of ones:", consumer.hadamard_transform(x, scale=0.5).tolist())

    # Names that stand for the module, and flags, may steer more than the import: on request only.
    show("sweep(everything=True):", hadamard_finder.sweep(everything=True))
    print("HAS_FAST_HADAMARD:", consumer.HAS_FAST_HADAMARD)
