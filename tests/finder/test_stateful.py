"""Any sequence of installing, breaking, importing, reloading and switching: never half and half.

In this process, because a child for each step would cost minutes; what a run changes is put back.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import runpy
import shutil
import sys
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path

import faults
import probe
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from support import STUB_TORCH

import hadamard_finder
from hadamard_finder import finder

# Built once: a compiler run for each step would be slow. Threads outlive a step, and what kills
# Python is no state of it.
BROKEN = sorted(
    name
    for name, fault in faults.FAULTS.items()
    if not fault.kills and not fault.needs and name != "thread-goes-on"
)
SPELLINGS = (
    "import fast_hadamard_transform",
    "from fast_hadamard_transform import hadamard_transform",
    "import fast_hadamard_transform.fast_hadamard_transform_interface",
    "from fast_hadamard_transform import fast_hadamard_transform_interface",
    "from fast_hadamard_transform.fast_hadamard_transform_interface import hadamard_transform_12N",
    "import fast_hadamard_transform_cuda",
    "import importlib; importlib.import_module('fast_hadamard_transform')",
    "__import__('fast_hadamard_transform', fromlist=['hadamard_transform'])",
    "import importlib.util; importlib.util.find_spec('fast_hadamard_transform')",
    "import importlib.util; importlib.util.find_spec('fast_hadamard_transform_cuda')",
)


class Process(RuleBasedStateMachine):
    """One process's life with a package that comes, breaks and goes."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        sys.path.insert(0, str(self.folder))
        finder.start()

    def teardown(self) -> None:
        hadamard_finder.deactivate()
        for name in probe.family():
            del sys.modules[name]
        sys.path.remove(str(self.folder))
        shutil.rmtree(self.folder)
        os.environ.pop("HADAMARD_FINDER", None)
        importlib.invalidate_caches()

    # The real one as often as all the broken ones together.
    @rule(
        fault=st.one_of(st.just(""), st.just("absent"), st.sampled_from(BROKEN)),
        invalidate=st.booleans(),
    )
    def lay(self, fault: str, invalidate: bool) -> None:
        faults.clear(self.folder)
        if not fault:
            faults.build_real(self.folder)
        elif fault != "absent":
            faults.FAULTS[fault].build(self.folder)
        if invalidate:
            importlib.invalidate_caches()

    @rule()
    def invalidate_caches(self) -> None:
        importlib.invalidate_caches()

    @rule(spelling=st.sampled_from(SPELLINGS))
    def import_it(self, spelling: str) -> None:
        # What a broken package raises while we are off or away is its own business.
        with contextlib.suppress(Exception):
            exec(spelling, {})

    @rule(name=st.sampled_from([probe.PACKAGE, probe.EXTENSION]))
    def reload(self, name: str) -> None:
        module = sys.modules.get(name)
        if probe.kind(module) in ("real", "stand-in"):
            with contextlib.suppress(Exception):
                importlib.reload(module)

    @rule(value=st.sampled_from(["auto", "off", "force", "nonsense", ""]))
    def switch(self, value: str) -> None:
        os.environ["HADAMARD_FINDER"] = value

    @rule(how=st.sampled_from(["start", "activate", "deactivate", "sweep"]))
    def call(self, how: str) -> None:
        with contextlib.suppress(ImportError):
            getattr(hadamard_finder, how)()

    @rule(name=st.sampled_from([probe.PACKAGE, probe.EXTENSION]))
    def block(self, name: str) -> None:
        # The extension is blocked before it is there: taken from under a package it is a mixture
        # of the test's own making.
        if name == probe.PACKAGE or not probe.family():
            sys.modules[name] = None  # type: ignore[assignment]

    @rule()
    def put_a_foreign_module(self) -> None:
        stub = types.ModuleType(probe.PACKAGE)
        stub.hadamard_transform = len  # type: ignore[attr-defined]
        del stub.__spec__
        sys.modules[probe.PACKAGE] = stub

    @rule()
    def forget_the_package(self) -> None:
        sys.modules.pop(probe.PACKAGE, None)

    @rule()
    def forget_everything(self) -> None:
        for name in probe.family():
            del sys.modules[name]

    @invariant()
    def wholly_one_of_them(self) -> None:
        if hasattr(self, "folder"):
            probe.check_whole()


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put everything back that the machine touches, the environment's own finder included."""
    modules, paths = probe.family(), list(sys.meta_path)
    state = vars(finder.STATE)  # other modules hold the object: empty it, do not replace it
    kept = state.copy()
    logger = logging.getLogger("hadamard_finder")
    level = logger.level
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    try:
        import torch  # noqa: F401
    except ImportError:
        monkeypatch.syspath_prepend(STUB_TORCH)
    logger.setLevel(logging.CRITICAL)
    for name in modules:
        del sys.modules[name]
    sys.meta_path[:] = [item for item in paths if not finder.is_finder(item)]
    state.update(vars(runpy.run_path(finder.__file__)["STATE"]))
    try:
        yield
    finally:
        for name in probe.family():
            del sys.modules[name]
        sys.modules.update(modules)
        sys.meta_path[:] = paths
        state.update(kept)
        logger.setLevel(level)


@pytest.mark.usefixtures("apart")
def test_no_sequence_of_steps_mixes_real_and_stand_in():
    run_state_machine_as_test(
        Process,
        settings=settings(
            max_examples=150,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
