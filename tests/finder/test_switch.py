"""The switch HADAMARD_FINDER (decision 9)."""

from __future__ import annotations

import pytest
from faults import build_real


@pytest.mark.parametrize("value", ["off", "OFF", " off "])
def test_off_is_as_if_we_were_not_installed(site, value: str):
    site.run(
        """
        import importlib.util, sys
        assert importlib.util.find_spec(probe.PACKAGE) is None
        for name in (probe.PACKAGE, probe.EXTENSION, probe.INTERFACE):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                assert error.name in (name, probe.PACKAGE) and "stand-in" not in str(error)
            else:
                raise AssertionError(name)
        assert not log and "torch" not in sys.modules
        assert "hadamard_finder.takeover" not in sys.modules
        """,
        env={"HADAMARD_FINDER": value},
    ).check()


def test_off_leaves_a_broken_one_broken(site):
    build_real(site.folder, init="raise OSError('as it is')")
    result = site.run("import fast_hadamard_transform", env={"HADAMARD_FINDER": "off"})
    assert result.code == 1
    assert result.err.strip().endswith("OSError: as it is")


@pytest.mark.parametrize("value", ["force", "Force\t"])
def test_force_serves_where_the_real_one_works(site, value: str):
    build_real(site.folder)
    site.run(
        """
        import fast_hadamard_transform_cuda
        assert probe.kind(fast_hadamard_transform_cuda) == "stand-in"
        import fast_hadamard_transform
        assert probe.check_whole() == "stand-in"
        assert len(log) == 1 and "HADAMARD_FINDER=force" in log[0]
        """,
        env={"HADAMARD_FINDER": value},
    ).check()


@pytest.mark.parametrize("value", ["auto", "", "  ", "AUTO"])
def test_auto_says_nothing_of_itself(site, value: str):
    build_real(site.folder)
    site.run(
        "import fast_hadamard_transform; assert probe.check_whole() == 'real'; assert not log",
        env={"HADAMARD_FINDER": value},
    ).check()


@pytest.mark.parametrize("real", [True, False])
def test_a_bad_value_is_auto_and_one_more_warning(site, real: bool):
    if real:
        build_real(site.folder)
    site.run(
        f"""
        import importlib
        import fast_hadamard_transform
        assert probe.check_whole() == {"real" if real else "stand-in"!r}
        assert log[0] == "WARNING HADAMARD_FINDER='Of' is unknown, auto is used; " \\
            "allowed: auto, off, force", log
        assert len(log) == {1 if real else 2}, log
        importlib.reload(fast_hadamard_transform)
        assert len(log) == {1 if real else 2}, log
        """,
        env={"HADAMARD_FINDER": "Of"},
    ).check()


def test_it_is_read_at_the_import_not_at_the_start(site):
    site.run(
        """
        import os
        os.environ["HADAMARD_FINDER"] = "off"
        try:
            import fast_hadamard_transform
        except ModuleNotFoundError:
            pass
        else:
            raise AssertionError
        os.environ["HADAMARD_FINDER"] = "auto"
        import fast_hadamard_transform
        assert probe.check_whole() == "stand-in"
        """
    ).check()


def test_while_the_package_is_ours_so_is_the_extension_even_under_off(site):
    build_real(site.folder, init="raise OSError('no')")
    site.run(
        """
        import os, sys
        import fast_hadamard_transform
        os.environ["HADAMARD_FINDER"] = "off"
        del sys.modules[probe.EXTENSION]
        import fast_hadamard_transform_cuda
        assert probe.kind(fast_hadamard_transform_cuda) == "stand-in"
        """
    ).check()


def test_whoever_missed_it_under_off_is_repaired_later(site):
    site.write("consumer.py", "hadamard_transform = None\n")
    site.write("later.py", "hadamard_transform = None\n")
    site.run(
        """
        import os
        os.environ["HADAMARD_FINDER"] = "off"
        import consumer
        try:
            import fast_hadamard_transform
        except ImportError:
            pass
        os.environ["HADAMARD_FINDER"] = "auto"
        import later  # after the failed import: a None of its own
        import fast_hadamard_transform
        assert consumer.hadamard_transform is fast_hadamard_transform.hadamard_transform
        assert later.hadamard_transform is None
        """
    ).check()


def test_off_does_not_put_our_extension_under_the_real_package(site):
    site.run(
        """
        import importlib, os, sys
        from pathlib import Path
        import faults
        import fast_hadamard_transform_cuda
        faults.build_real(Path(os.environ["HERE"]))
        importlib.invalidate_caches()
        os.environ["HADAMARD_FINDER"] = "off"
        import fast_hadamard_transform
        assert probe.check_whole() == "real"
        assert probe.kind(sys.modules[probe.EXTENSION]) == "real"
        """,
        env={"HERE": str(site.folder)},
    ).check()
