"""``importlib.reload`` (decision 7): still broken, repaired, broken since, and mixtures."""

from __future__ import annotations

import pytest

PRELUDE = """
import importlib, os, sys
from pathlib import Path
import faults
HERE = Path(os.environ["HERE"])

def lay(state):
    faults.clear(HERE)
    if state == "real":
        faults.build_real(HERE)
    elif state == "broken":
        faults.build_real(HERE, init=faults.REAL_INIT + "half = 1\\nraise OSError('broken now')\\n")
    elif state == "no-extension":
        faults.build_real(HERE, extension=None)
    importlib.invalidate_caches()
"""


def steps(site, code: str, **options):
    env = {"HERE": str(site.folder), "PYTHONDONTWRITEBYTECODE": "1", **options.pop("env", {})}
    return site.run(PRELUDE + code, env=env, **options).check()


@pytest.mark.parametrize("broken", ["absent", "broken", "no-extension"])
def test_still_broken_still_the_stand_in(site, broken: str):
    steps(
        site,
        f"""
lay({broken!r})
import fast_hadamard_transform as package
held = package.hadamard_transform, sys.modules[probe.INTERFACE], sys.modules[probe.EXTENSION]
for _ in range(2):
    assert importlib.reload(package) is package
    assert probe.check_whole() == "stand-in"
    assert held == (
        package.hadamard_transform, sys.modules[probe.INTERFACE], sys.modules[probe.EXTENSION]
    )
importlib.reload(sys.modules[probe.INTERFACE])
importlib.reload(sys.modules[probe.EXTENSION])
assert probe.check_whole() == "stand-in"
assert len(log) == 1, log
""",
    )


@pytest.mark.parametrize("broken", ["absent", "broken", "no-extension"])
@pytest.mark.parametrize("switch", ["auto", "off"])
def test_repaired_on_disk_it_is_really_the_real_one(site, broken: str, switch: str):
    steps(
        site,
        f"""
lay({broken!r})
import fast_hadamard_transform as package
package.mine = 1
lay("real")
os.environ["HADAMARD_FINDER"] = {switch!r}
assert importlib.reload(package) is package
assert probe.check_whole() == "real"
assert package.hadamard_transform(1, 2) == ("real", 1, 2)
assert package.__version__ == "1.1.0" and not hasattr(package, "__hadamard_finder__")
from hadamard_finder.finder import STATE
assert probe.PACKAGE not in STATE.causes
assert len(log) == 1
""",
    )


def test_a_repaired_extension_is_the_real_one(site):
    steps(
        site,
        """
import fast_hadamard_transform_cuda as extension
assert probe.kind(extension) == "stand-in"
lay("real")
assert importlib.reload(extension) is extension
probe.check_whole()
assert probe.kind(extension) == "real" and extension.fast_hadamard_transform(1, 2)[0] == "real"
""",
    )


def test_the_real_one_reloads_as_without_us(site):
    steps(
        site,
        """
lay("real")
import fast_hadamard_transform as package
package.mine = 1
assert importlib.reload(package) is package
assert probe.check_whole() == "real" and package.mine == 1 and not log
""",
    )


@pytest.mark.parametrize("name", ["PACKAGE", "EXTENSION"])
def test_a_real_one_whose_reload_fails_stays_real_and_raises(site, name: str):
    steps(
        site,
        f"""
lay("real")
name = probe.{name}
package = importlib.import_module(name)
before = dict(vars(package))
lay("broken")
(HERE / "fast_hadamard_transform_cuda.py").write_text("half = 1\\nraise OSError('broken now')")
try:
    importlib.reload(package)
except OSError as error:
    assert str(error) == "broken now"
else:
    raise AssertionError("no error")
assert not hasattr(package, "half")
assert vars(package) == before
probe.check_whole()
assert probe.kind(package) == "real" and not log
lay("real")
importlib.reload(package)
probe.check_whole()
""",
    )


def test_a_real_one_that_was_uninstalled_is_the_stand_in_whole(site):
    steps(
        site,
        """
lay("real")
import fast_hadamard_transform as package
package.mine = 1
lay("absent")
importlib.reload(package)
assert probe.check_whole() == "stand-in"
assert not hasattr(package, "mine")
assert len(log) == 1 and "is not installed" in log[0]
""",
    )


@pytest.mark.parametrize("what", ["finder", "torch"])
def test_a_real_one_that_can_become_nothing_else_stays_whole(site, what: str):
    """The spec of the stand-in has named the module by then: that must go back, too."""
    steps(
        site,
        f"""
lay("real")
import fast_hadamard_transform as package
from hadamard_finder import finder
before = {{key: value for key, value in vars(package).items()}}
what = {what!r}
if what == "finder":
    class Raising:
        def find_spec(self, name, path=None, target=None):
            if name == probe.PACKAGE:
                raise OSError("rebuild failed")
    sys.meta_path.insert(1, Raising())
else:
    lay("absent")
    import torch
    del torch.Tensor  # the stand-in does not load now
try:
    importlib.reload(package)
except (OSError, ImportError):
    pass
else:
    raise AssertionError("no error")
assert vars(package) == before, set(vars(package)) ^ set(before)
assert probe.kind(package) == "real" and not log
assert package.hadamard_transform(1, 2) == ("real", 1, 2)
assert probe.check_whole() == "real"
""",
    )


def test_a_stand_in_that_cannot_load_again_stays_the_stand_in(site):
    steps(
        site,
        """
import fast_hadamard_transform as package
before = dict(vars(package))
del sys.modules[probe.INTERFACE].hadamard_transform
parts = probe.family()
try:
    importlib.reload(package)
except ImportError as error:
    assert "its stand-in does not load" in str(error), error
else:
    raise AssertionError("no error")
assert probe.family() == parts and vars(package) == before
""",
    )


def test_force_and_reload_leave_nothing_real(site):
    steps(
        site,
        """
lay("real")
import fast_hadamard_transform as package
package.mine = 1
os.environ["HADAMARD_FINDER"] = "force"
importlib.reload(package)
assert probe.check_whole() == "stand-in"
assert not hasattr(package, "mine") and not hasattr(package, "torch")
os.environ["HADAMARD_FINDER"] = "auto"
importlib.reload(package)
assert probe.check_whole() == "real"
""",
    )


@pytest.mark.parametrize("blocked", [True, False])
def test_reloaded_under_off_without_a_real_one_it_is_not_mixed(site, blocked: bool):
    steps(
        site,
        f"""
if {blocked}:
    sys.modules[probe.EXTENSION] = None
lay("broken")
import fast_hadamard_transform as package
os.environ["HADAMARD_FINDER"] = "off"
importlib.reload(package)
assert probe.check_whole() == "stand-in"
""",
    )


def test_dropped_from_sys_modules_and_imported_again(site):
    steps(
        site,
        """
lay("no-extension")
import fast_hadamard_transform as first
del sys.modules[probe.PACKAGE]
import fast_hadamard_transform as second
assert second is not first and probe.check_whole() == "stand-in"
del sys.modules[probe.PACKAGE]
lay("real")
import fast_hadamard_transform as third
assert probe.check_whole() == "real"
os.environ["HADAMARD_FINDER"] = "force"
del sys.modules[probe.PACKAGE]
import fast_hadamard_transform
assert probe.check_whole() == "stand-in"
""",
    )


def test_the_finders_own_file_reloaded(site):
    steps(
        site,
        """
from hadamard_finder import finder
state = finder.STATE
lay("broken")
import fast_hadamard_transform
importlib.reload(finder)
assert finder.STATE is state and probe.finders() == 1
finder.start()
assert probe.finders() == 1
assert probe.check_whole() == "stand-in"
importlib.reload(fast_hadamard_transform)
assert probe.check_whole() == "stand-in"
lay("real")
importlib.reload(fast_hadamard_transform)
assert probe.check_whole() == "real"
assert len(log) == 1
import hadamard_finder
hadamard_finder.deactivate()
assert probe.finders() == 0
""",
    )


@pytest.mark.parametrize("how", ["force", "absent"])
def test_the_extension_of_a_real_package_does_not_become_ours(site, how: str):
    steps(
        site,
        f"""
lay("real")
import fast_hadamard_transform
extension = sys.modules[probe.EXTENSION]
if {how!r} == "force":
    os.environ["HADAMARD_FINDER"] = "force"
else:
    lay("absent")
before = dict(vars(extension))
try:
    importlib.reload(extension)
except ImportError as error:
    assert "is real: reload that" in str(error), error
else:
    raise AssertionError
assert vars(extension) == before
assert probe.check_whole() == "real" and not log
""",
    )


@pytest.mark.parametrize("switch", ["auto", "force"])
def test_a_real_extension_alone_may_become_ours(site, switch: str):
    steps(
        site,
        f"""
lay("real")
import fast_hadamard_transform_cuda as extension
lay("absent")
os.environ["HADAMARD_FINDER"] = {switch!r}
importlib.reload(extension)
assert probe.kind(extension) == "stand-in"
probe.check_whole()
""",
    )


def test_a_part_of_ours_that_outlived_the_package_keeps_the_extension_ours(site):
    """Else the interface, which comes back with the package, would hold a real extension."""
    steps(
        site,
        """
lay("absent")
import fast_hadamard_transform
del sys.modules[probe.PACKAGE]
lay("real")
importlib.reload(sys.modules[probe.EXTENSION])
lay("absent")
import fast_hadamard_transform
assert probe.check_whole() == "stand-in"
""",
    )


def test_off_does_not_put_our_interface_under_the_real_package(site):
    steps(
        site,
        """
sys.modules[probe.EXTENSION] = None
import fast_hadamard_transform
del sys.modules[probe.PACKAGE], sys.modules[probe.EXTENSION]
lay("real")
os.environ["HADAMARD_FINDER"] = "off"
import fast_hadamard_transform
assert probe.check_whole() == "real"
assert fast_hadamard_transform.hadamard_transform(1, 2) == ("real", 1, 2)
""",
    )
