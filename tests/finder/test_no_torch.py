"""torch missing, blocked or broken: the caller sees an honest error (decisions 3 and 5)."""

from __future__ import annotations

import pytest
from faults import build_real

PLAIN = """
import importlib.util, sys
for name in (probe.PACKAGE, probe.EXTENSION):
    assert importlib.util.find_spec(name) is None
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        assert error.name == name and str(error) == f"No module named {name!r}"
        assert error.__cause__ is None
    else:
        raise AssertionError(name)
assert not log and probe.family() == {}
"""


def test_torch_missing(site):
    site.run(PLAIN, torch=None).check()


def test_torch_missing_and_force(site):
    site.run(PLAIN, torch=None, env={"HADAMARD_FINDER": "force"}).check()


def test_torch_blocked(site):
    site.run("import sys; sys.modules['torch'] = None\n" + PLAIN).check()


def test_a_folder_named_torch_is_no_torch(site):
    (site.folder / "torch" / "csrc").mkdir(parents=True)
    site.run(PLAIN, torch=None).check()


def test_torch_missing_a_leftover_folder_is_what_it_is_without_us(site):
    (site.folder / "fast_hadamard_transform").mkdir()
    code = """
    import fast_hadamard_transform
    assert fast_hadamard_transform.__file__ is None and not log
    try:
        from fast_hadamard_transform import hadamard_transform
    except ImportError as error:
        assert "unknown location" in str(error)
    """
    site.run(code, torch=None).check()
    site.run(code, torch=None, start=False).check()


def test_torch_missing_and_a_finder_that_raises(site):
    result = site.run(
        """
        import sys
        class Rebuild:
            def find_spec(self, name, path=None, target=None):
                if name.startswith("fast_hadamard_transform"):
                    raise OSError("cmake failed")
        sys.meta_path.insert(1, Rebuild())
        import fast_hadamard_transform
        """,
        torch=None,
    )
    assert result.code == 1
    assert result.err.strip().endswith("OSError: cmake failed")


@pytest.mark.parametrize("broken", ["raise OSError('libtorch.so: cannot open')", "1 / 0", "x ="])
def test_torch_broken_and_the_package_absent(site, broken: str):
    site.write("torch/__init__.py", broken)
    site.run(
        """
        reached = 0
        for name in (probe.PACKAGE, probe.INTERFACE, probe.EXTENSION):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                reached += 1
                assert error.name in (name, probe.PACKAGE)
                assert "its stand-in does not load: " in str(error), error
                assert type(error.__cause__).__name__ in str(error)
        assert reached == 3
        assert probe.family() == {} and not log
        from hadamard_finder.finder import STATE
        assert not STATE.causes and STATE.loading == 0
        """,
        torch=None,
    ).check()


@pytest.mark.parametrize("blocks", ["ImportError", "OSError"])
def test_a_finder_that_refuses_torch(site, blocks: str):
    site.run(
        f"""
        import sys
        class Refuses:
            def find_spec(self, name, path=None, target=None):
                if name == "torch":
                    raise {blocks}("torch is not for you")
        sys.meta_path.insert(0, Refuses())
        try:
            import fast_hadamard_transform
        except ModuleNotFoundError as error:
            assert error.name == probe.PACKAGE and "torch is not for you" in str(error)
        else:
            raise AssertionError
        """
    ).check()


def test_torch_broken_and_the_package_broken(site):
    site.write("torch/__init__.py", "raise OSError('libtorch.so: cannot open')")
    build_real(site.folder, init="import inner_fault\n")
    site.write("inner_fault.py", "raise ValueError('the original')")
    site.run(
        """
        try:
            import fast_hadamard_transform
        except ValueError as error:
            assert str(error) == "the original"
        else:
            raise AssertionError
        assert probe.family() == {} and not log
        """,
        torch=None,
    ).check()


def test_torch_broken_and_the_real_one_needs_none(site):
    site.write("torch/__init__.py", "raise OSError('libtorch.so: cannot open')")
    build_real(site.folder, interface="hadamard_transform = len\n")
    site.run("import fast_hadamard_transform; assert probe.check_whole() == 'real'", torch=None)


def test_torch_repaired_meanwhile(site):
    torch = site.write("torch/__init__.py", "raise OSError('no')")
    site.run(
        f"""
        import importlib, sys
        try:
            import fast_hadamard_transform
        except ImportError:
            pass
        else:
            raise AssertionError
        import os
        os.remove({str(torch)!r})
        os.rmdir(os.path.dirname({str(torch)!r}))
        import support
        sys.path.append(str(support.STUB_TORCH))
        importlib.invalidate_caches()
        import fast_hadamard_transform
        assert probe.check_whole() == "stand-in"
        """,
        torch=None,
        env={"PYTHONDONTWRITEBYTECODE": "1"},
    ).check()


def test_whoever_missed_it_without_torch_is_repaired_once_there_is_one(site):
    site.write("consumer.py", "hadamard_transform = None\n")
    site.run(
        """
        import importlib, sys
        import consumer
        try:
            import fast_hadamard_transform
        except ModuleNotFoundError:
            pass
        else:
            raise AssertionError
        import support
        sys.path.append(str(support.STUB_TORCH))
        importlib.invalidate_caches()
        import fast_hadamard_transform
        assert consumer.hadamard_transform is fast_hadamard_transform.hadamard_transform
        """,
        torch=None,
    ).check()


def test_torch_missing_and_a_finder_that_raises_once(site):
    """As an editable install that tries to rebuild once in a process."""
    site.run(
        """
        import sys
        tries = []
        class Rebuild:
            def find_spec(self, name, path=None, target=None):
                if name == probe.PACKAGE and not tries:
                    tries.append(name)
                    raise OSError("cmake failed")
        sys.meta_path.insert(1, Rebuild())
        try:
            import fast_hadamard_transform
        except OSError as error:
            assert str(error) == "cmake failed"
        else:
            raise AssertionError
        """,
        torch=None,
    ).check()
