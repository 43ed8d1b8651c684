"""Every broken installation that was met: the stand-in serves, whole, and says why once."""

from __future__ import annotations

import os
import signal
import zipfile
from pathlib import Path

import pytest
from faults import FAULTS, Fault, clear

ALL = [pytest.param(fault, id=name) for name, fault in FAULTS.items()]
SURVIVABLE = [pytest.param(fault, id=name) for name, fault in FAULTS.items() if not fault.kills]
EXTENSIONS = [
    pytest.param(fault, id=name)
    for name, fault in FAULTS.items()
    if fault.extension and not fault.kills
]
KILLING = [pytest.param(fault, id=name) for name, fault in FAULTS.items() if fault.kills]

# What a consumer does; then what this project promises.
CONSUME = """
reached = False
try:
    from fast_hadamard_transform import hadamard_transform
except ImportError:
    reached = True
assert not reached, "the consumer's fallback was reached"
import fast_hadamard_transform, fast_hadamard_transform_cuda
from fast_hadamard_transform.fast_hadamard_transform_interface import hadamard_transform_12N
assert probe.check_whole() == "stand-in"
assert set(probe.family()) == {probe.PACKAGE, probe.INTERFACE, probe.EXTENSION}
assert len(log) == 1, log
assert log[0].startswith("WARNING fast_hadamard_transform is served by"), log
print(log[0])
"""
CONSUME_EXTENSION = """
reached = False
try:
    import fast_hadamard_transform_cuda
except ImportError:
    reached = True
assert not reached, "the consumer's fallback was reached"
probe.check_whole()
assert probe.kind(fast_hadamard_transform_cuda) == "stand-in"
assert set(probe.family()) == {probe.EXTENSION}
assert len(log) == 1, log
assert log[0].startswith("WARNING fast_hadamard_transform_cuda is served by"), log
print(log[0])
import fast_hadamard_transform
assert probe.check_whole() == "stand-in"
assert sys.modules[probe.EXTENSION] is fast_hadamard_transform_cuda
assert len(log) == 1, log
"""


@pytest.mark.parametrize("fault", ALL)
def test_it_is_broken_without_us(site, lay, fault: Fault):
    lay(fault)
    result = site.run("from fast_hadamard_transform import hadamard_transform", start=False)
    if fault.kills:
        assert result.code == -signal.Signals[fault.raises].value
    elif fault.raises:
        assert result.code == 1
        error = result.err.strip().splitlines()[-1].partition(":")[0]
        # Which of the two a null byte raises depends on the Python.
        assert error in ({"SyntaxError", "ValueError"} if "null" in fault.text else {fault.raises})
    else:
        result.check()


@pytest.mark.parametrize("fault", SURVIVABLE)
def test_the_stand_in_serves(site, lay, fault: Fault):
    lay(fault)
    assert fault.text in site.run(CONSUME).check().out


@pytest.mark.parametrize("fault", EXTENSIONS)
def test_the_extension_alone_is_served(site, lay, fault: Fault):
    lay(fault)
    assert fault.text in site.run("import sys\n" + CONSUME_EXTENSION).check().out.splitlines()[0]


@pytest.mark.parametrize("spelling", ["interface", "from-package", "import_module", "dunder"])
def test_any_spelling_is_served(site, lay, spelling: str):
    lay(FAULTS["late-failure"])
    code = {
        "interface": "import fast_hadamard_transform.fast_hadamard_transform_interface",
        "from-package": "from fast_hadamard_transform import fast_hadamard_transform_interface",
        "import_module": "import importlib; importlib.import_module(probe.INTERFACE)",
        "dunder": "__import__('fast_hadamard_transform', fromlist=['hadamard_transform'])",
    }[spelling]
    site.run(f"{code}\nassert probe.check_whole() == 'stand-in'; assert len(log) == 1").check()


def test_what_a_thread_of_the_failed_package_imports_later_does_not_stay(site, lay):
    lay(FAULTS["thread-goes-on"])
    site.run(
        """
        import sys
        import fast_hadamard_transform
        gate = sys.modules["late_gate"]
        gate.go.set()
        gate.thread.join(60)
        assert not gate.thread.is_alive()
        assert probe.check_whole() == "stand-in"
        assert set(probe.family()) == {probe.PACKAGE, probe.INTERFACE, probe.EXTENSION}
        assert [name for name, _ in gate.errors] == [
            "fast_hadamard_transform.late", "fast_hadamard_transform.later"
        ], gate.errors
        assert len(log) == 1, log
        """
    ).check()


@pytest.mark.parametrize("fault", KILLING)
@pytest.mark.parametrize("name", ["fast_hadamard_transform", "fast_hadamard_transform_cuda"])
def test_one_that_kills_python_is_served_by_force(site, lay, fault: Fault, name: str):
    lay(fault)
    assert site.run(f"import {name}").code == -signal.Signals[fault.raises].value
    code = f"import {name}; probe.check_whole(); assert len(log) == 1; print(log[0])"
    forced = site.run(code, env={"HADAMARD_FINDER": "force"})
    assert "HADAMARD_FINDER=force" in forced.check().out


def test_repaired_on_disk_the_next_process_has_the_real_one(site, lay):
    lay(FAULTS["half-cut"])
    site.run(CONSUME).check()
    clear(site.folder)
    from faults import build_real

    build_real(site.folder)
    site.run(
        "import fast_hadamard_transform; assert probe.check_whole() == 'real'; assert not log"
    ).check()


def test_nothing_of_the_error_is_kept_but_its_text(site):
    # An error holds every frame of the failed import: a model half read, for one.
    site.write(
        "fast_hadamard_transform/__init__.py",
        """
        import fault_watch
        large = fault_watch.Large()
        def fail(held):
            raise RuntimeError("no")
        fail(large)
        """,
    )
    site.run(
        """
        import gc, sys, types, weakref
        watch = types.ModuleType("fault_watch")
        watch.alive = []
        class Large:
            def __init__(self):
                watch.alive.append(weakref.ref(self))
        watch.Large = Large
        sys.modules["fault_watch"] = watch
        import fast_hadamard_transform
        gc.collect()
        assert [ref() for ref in watch.alive] == [None]
        """
    ).check()


def test_the_real_broken_wheels(tmp_path: Path, site):
    """Those of upstream: a prebuilt one without its CUDA libraries, one without its extension."""
    folder = os.environ.get("HADAMARD_FINDER_TEST_WHEELS")
    if not folder:
        pytest.skip("HADAMARD_FINDER_TEST_WHEELS names no folder with real, broken wheels")
    wheels = sorted(Path(folder).rglob("*fast_hadamard_transform-*.whl"))
    assert wheels, f"no wheel in {folder}"
    for number, wheel in enumerate(wheels):
        target = tmp_path / str(number)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target)
        broken = site.run("import fast_hadamard_transform", path=(target,), start=False)
        assert broken.code == 1
        out = site.run(CONSUME, path=(target,)).check().out
        assert broken.err.strip().rpartition(": ")[2] in out or "is not installed" in out
