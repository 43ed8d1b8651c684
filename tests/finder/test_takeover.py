"""What becomes of a load that fails (decisions 5, 6 and 8)."""

from __future__ import annotations

import pytest
from faults import FAULTS, REAL_INIT, build_real
from support import REPO, run_python


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SystemExit", "GeneratorExit"])
def test_what_is_not_an_exception_passes(site, error: str):
    build_real(site.folder, init=f"{REAL_INIT}raise {error}\n")
    site.run(
        f"""
        import sys
        try:
            import fast_hadamard_transform
        except {error}:
            pass
        else:
            raise AssertionError("swallowed")
        assert probe.family() == {{}}, probe.family()
        assert not log
        from hadamard_finder.finder import STATE
        assert STATE.loading == 0 and not STATE.causes
        """
    ).check()


def test_an_exception_of_an_unusual_kind(site):
    site.write(
        "fast_hadamard_transform/__init__.py",
        """
        class Odd(Exception):
            def __str__(self):
                raise ValueError("no text")
        raise Odd
        """,
    )
    site.run(
        """
        import fast_hadamard_transform
        assert probe.check_whole() == "stand-in"
        assert "stand-in: Odd. " in log[0], log
        """
    ).check()


@pytest.mark.parametrize(
    ("init", "kind"),
    [
        ("", "stand-in"),
        ("__version__ = '1.1.0'\n_private = 1\n", "stand-in"),
        ("def __getattr__(name):\n    return len\n", "real"),
        ("hadamard_transform = len\n", "real"),
    ],
)
def test_a_load_that_ends_empty_has_failed(site, init: str, kind: str):
    build_real(site.folder, init=init)
    site.run(f"import fast_hadamard_transform; assert probe.check_whole() == {kind!r}").check()


def test_a_package_that_replaces_itself_is_not_empty(site):
    build_real(
        site.folder,
        init="import sys, types\nclass Lazy(types.ModuleType):\n    hadamard_transform = len\n"
        "new = Lazy(__name__)\nnew.__spec__ = __spec__\nsys.modules[__name__] = new\ndel new, sys\n"
        "del types, Lazy\n",
    )
    site.run(
        """
        import fast_hadamard_transform
        assert fast_hadamard_transform.hadamard_transform is len and not log
        """
    ).check()


def test_a_package_that_replaces_itself_and_then_fails(site):
    build_real(
        site.folder,
        init="import sys, types\nsys.modules[__name__] = types.ModuleType(__name__)\nraise OSError",
    )
    site.run("import fast_hadamard_transform; assert probe.check_whole() == 'stand-in'").check()


def test_a_package_that_unregisters_itself_and_then_fails(site):
    build_real(site.folder, init="import sys\ndel sys.modules[__name__]\nraise OSError('gone')")
    site.run("import fast_hadamard_transform; assert probe.check_whole() == 'stand-in'").check()


def test_a_package_that_spoils_its_own_identity_and_then_fails(site):
    build_real(
        site.folder,
        init="__name__ = 'other'\n__spec__ = None\n__path__ = []\n__loader__ = None\n"
        "__package__ = ''\n__file__ = 'x'\nraise OSError('no')\n",
    )
    site.run("import fast_hadamard_transform; assert probe.check_whole() == 'stand-in'").check()


def test_the_module_and_the_spec_are_turned_in_place(site):
    # Threads that wait for this import hold its spec and will get its module.
    build_real(
        site.folder,
        init="import sys\nsys.seen = sys.modules[__name__], __spec__\nraise OSError('no')\n",
    )
    site.run(
        """
        import sys
        import fast_hadamard_transform
        assert sys.seen[0] is fast_hadamard_transform
        assert sys.seen[1] is fast_hadamard_transform.__spec__
        assert probe.check_whole() == "stand-in"
        assert not fast_hadamard_transform.__spec__._initializing
        """
    ).check()


def test_no_global_of_the_failed_attempt_remains(site):
    build_real(
        site.folder, init=f"{REAL_INIT}leak = 1\n_leak = 2\n__all__ = ['leak']\nraise OSError"
    )
    site.run(
        """
        import fast_hadamard_transform
        assert not {"leak", "_leak"} & set(vars(fast_hadamard_transform))
        assert fast_hadamard_transform.__all__ == ["hadamard_transform"]
        assert probe.check_whole() == "stand-in"
        """
    ).check()


def test_a_broken_extension_that_loads_nothing_else(site):
    site.write(
        "fast_hadamard_transform_cuda/__init__.py", "from . import inner\nraise OSError('x')"
    )
    site.write("fast_hadamard_transform_cuda/inner.py", "")
    site.run(
        """
        import fast_hadamard_transform_cuda
        assert set(probe.family()) == {probe.EXTENSION}
        assert not hasattr(fast_hadamard_transform_cuda, "__path__")
        probe.check_whole()
        """
    ).check()


def test_a_healthy_extension_is_ours_while_the_package_is(site):
    build_real(site.folder, init="raise OSError('no')")
    site.run(
        """
        import fast_hadamard_transform_cuda as healthy
        assert probe.kind(healthy) == "real" and not log
        import fast_hadamard_transform
        import fast_hadamard_transform_cuda as now
        assert probe.check_whole() == "stand-in"
        assert now is not healthy and probe.kind(now) == "stand-in"
        """
    ).check()


def test_the_real_package_never_meets_our_extension(site):
    """Imported on its own, the extension was missing; it has arrived by the time of the package."""
    build_real(site.folder, extension=None)
    site.run(
        f"""
        import importlib, sys
        import fast_hadamard_transform_cuda as ours
        assert probe.kind(ours) == "stand-in"
        import faults
        from pathlib import Path
        faults.build_real(Path({str(site.folder)!r}))
        importlib.invalidate_caches()
        import fast_hadamard_transform
        assert probe.check_whole() == "real"
        assert probe.kind(sys.modules[probe.EXTENSION]) == "real"
        assert fast_hadamard_transform.hadamard_transform(1, 2) == ("real", 1, 2)
        """
    ).check()


def test_what_was_set_aside_comes_back(site, lay):
    """The extension's stand-in that a consumer holds is the one that the package then has."""
    lay(FAULTS["missing-extension"])
    site.run(
        """
        import sys
        import fast_hadamard_transform_cuda as held
        import fast_hadamard_transform
        assert sys.modules[probe.EXTENSION] is held
        assert probe.check_whole() == "stand-in"
        """
    ).check()


def test_a_package_that_does_without_its_extension_is_not_half_ours(site):
    build_real(
        site.folder,
        interface="try:\n    import fast_hadamard_transform_cuda\nexcept ImportError:\n"
        "    fast_hadamard_transform_cuda = None\nhadamard_transform = len\n",
        extension=None,
    )
    site.run("import fast_hadamard_transform; assert probe.check_whole() == 'stand-in'").check()


def test_none_blocks_the_package(site):
    site.run(
        """
        import sys
        sys.modules[probe.PACKAGE] = None
        for code in ("import fast_hadamard_transform", f"import {probe.INTERFACE}"):
            try:
                exec(code)
            except ModuleNotFoundError as error:
                assert error.name in (probe.PACKAGE, probe.INTERFACE)
            else:
                raise AssertionError(code)
        import hadamard_finder
        hadamard_finder.activate()
        assert sys.modules[probe.PACKAGE] is None and not log
        """
    ).check()


@pytest.mark.parametrize("state", ["absent", "real", "broken"])
def test_none_blocks_the_extension_alone(site, state: str):
    if state != "absent":
        build_real(site.folder, init=REAL_INIT if state == "real" else "raise OSError('no')")
    site.run(
        """
        import sys
        sys.modules[probe.EXTENSION] = None
        import fast_hadamard_transform
        assert probe.check_whole() == "stand-in"
        assert sys.modules[probe.EXTENSION] is None
        assert sys.modules[probe.INTERFACE].fast_hadamard_transform_cuda is None
        assert callable(fast_hadamard_transform.hadamard_transform)
        assert len(log) == 1
        """
    ).check()


def test_an_extension_that_a_thread_is_still_opening(site):
    """It was found before the package failed, and is ready only afterwards."""
    site.write(
        "fast_hadamard_transform/__init__.py",
        """
        import threading
        import gates
        def opens():
            try:
                import fast_hadamard_transform_cuda
            except Exception as error:
                print(error)
        gates.thread = threading.Thread(target=opens, daemon=True)
        gates.thread.start()
        gates.opening.wait(30)
        raise OSError("failed meanwhile")
        """,
    )
    site.run(
        """
        import sys, threading, types
        from importlib.machinery import ModuleSpec
        gates = sys.modules["gates"] = types.ModuleType("gates")
        gates.opening, gates.open = threading.Event(), threading.Event()
        class Slow:
            def create_module(self, spec):
                gates.opening.set()
                gates.open.wait(30)
                return None
            def exec_module(self, module):
                module.fast_hadamard_transform = module.healthy = len
        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == probe.EXTENSION:
                    return ModuleSpec(name, Slow(), origin="slow")
        sys.meta_path.insert(1, Finder())
        # The stand-in's interface waits for the thread's lock on the extension: let it go then.
        from hadamard_finder.transform import surface
        threading.Timer(0.2, gates.open.set).start()
        import fast_hadamard_transform
        gates.thread.join(30)
        assert probe.check_whole() == "stand-in"
        assert probe.kind(sys.modules[probe.EXTENSION]) == "stand-in"
        assert not hasattr(sys.modules[probe.EXTENSION], "healthy")
        """
    ).check()


@pytest.mark.parametrize("how", ["handler", "stderr"])
def test_a_failing_log_handler_takes_nothing_down(site, how: str):
    site.write("late_consumer.py", "hadamard_transform = None\n")
    site.run(
        f"""
        import logging, sys
        import hadamard_finder
        hadamard_finder.deactivate()
        import late_consumer  # imported while the finder was off: it may have missed the package
        hadamard_finder.start()
        class Failing(logging.Handler):
            def emit(self, record):
                raise RuntimeError("handler failed")
        logging.getLogger("hadamard_finder").addHandler(Failing())
        stderr = sys.stderr
        if {how == "stderr"}:
            sys.stderr = None  # as under pythonw
        import fast_hadamard_transform
        sys.stderr = stderr
        assert probe.check_whole() == "stand-in"
        assert late_consumer.hadamard_transform is fast_hadamard_transform.hadamard_transform
        """
    ).check()


def test_odd_names_in_main_do_not_keep_us_from_starting():
    # No name here may be public: the first one ends the look at them.
    run_python(
        """
        globals()[1] = 2
        import hadamard_finder as _ours, sys as _sys
        _ours.start()
        assert _ours.finder.is_finder(_sys.meta_path[0])
        """,
        flags=("-S",),
        path=[REPO],
    ).check()


def test_whoever_missed_it_while_the_stand_in_could_not_load_is_repaired(site):
    site.write(
        "consumer.py",
        """
        try:
            from fast_hadamard_transform import hadamard_transform
        except ImportError:
            hadamard_transform = None
        """,
    )
    site.run(
        """
        import torch
        tensor = torch.Tensor
        del torch.Tensor  # as while torch itself is still being imported
        import consumer
        assert consumer.hadamard_transform is None
        torch.Tensor = tensor
        import fast_hadamard_transform
        assert probe.check_whole() == "stand-in"
        assert consumer.hadamard_transform is fast_hadamard_transform.hadamard_transform
        """
    ).check()


def test_a_submodule_that_a_thread_is_still_opening(site):
    """The real interface arrives while the stand-in is being run: it is run again without it."""
    site.write(
        "fast_hadamard_transform/__init__.py",
        """
        import threading
        import gates
        def opens():
            try:
                import fast_hadamard_transform.fast_hadamard_transform_interface
            except Exception as error:
                print(error)
        gates.thread = threading.Thread(target=opens, daemon=True)
        gates.thread.start()
        gates.opening.wait(30)
        raise OSError("failed meanwhile")
        """,
    )
    site.run(
        """
        import sys, threading, types
        from importlib.machinery import ModuleSpec
        gates = sys.modules["gates"] = types.ModuleType("gates")
        gates.opening, gates.open = threading.Event(), threading.Event()
        class Slow:
            def create_module(self, spec):
                gates.opening.set()
                gates.open.wait(30)
                return None
            def exec_module(self, module):
                module.hadamard_transform = len
        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == probe.INTERFACE:
                    return ModuleSpec(name, Slow(), origin="slow")
        sys.meta_path.insert(1, Finder())
        # The stand-in waits for the thread's lock on the interface: let it go then.
        from hadamard_finder.transform import surface
        threading.Timer(0.2, gates.open.set).start()
        import fast_hadamard_transform
        gates.thread.join(30)
        assert not gates.thread.is_alive()
        assert probe.check_whole() == "stand-in"
        """
    ).check()


def test_a_submodule_that_arrives_while_the_stand_in_runs(site):
    site.write("late.py", "value = 1\n")
    site.write(
        "torch/__init__.py",
        """
        import fast_hadamard_transform.late  # as a thread of the failed package would
        from torch import autograd
        class Tensor:
            pass
        """,
    )
    site.write("torch/autograd.py", "class Function:\n    pass\n")
    build_real(site.folder, init="raise OSError('no')\n")
    site.run(
        f"""
        import sys
        from importlib.util import spec_from_file_location
        class Editable:
            def find_spec(self, name, path=None, target=None):
                if name == "fast_hadamard_transform.late":
                    return spec_from_file_location(name, {str(site.folder / "late.py")!r})
        sys.meta_path.insert(1, Editable())
        import fast_hadamard_transform
        assert probe.check_whole() == "stand-in"
        assert "fast_hadamard_transform.late" not in sys.modules
        assert not hasattr(fast_hadamard_transform, "late")
        """,
        torch=None,
    ).check()


def test_a_module_run_by_hand_whose_stand_in_fails(site):
    build_real(site.folder, init="half = 1\nraise OSError('the original')\n")
    site.write("torch/__init__.py", "raise OSError('libtorch.so')")
    site.run(
        """
        import importlib.util
        spec = importlib.util.find_spec(probe.PACKAGE)
        module = importlib.util.module_from_spec(spec)
        before = dict(vars(module))
        try:
            spec.loader.exec_module(module)
        except OSError as error:
            assert str(error) == "the original"
        else:
            raise AssertionError
        assert probe.family() == {}
        assert {**vars(module), "__builtins__": 0, "__loader__": 0} == {
            **before, "__builtins__": 0, "__loader__": 0
        }
        """,
        torch=None,
    ).check()


def test_a_loader_that_names_itself_keeps_its_name(site):
    site.run(
        """
        import sys, types
        from importlib.machinery import ModuleSpec
        class Own:
            def create_module(self, spec):
                module = types.ModuleType(spec.name)
                module.__loader__ = "its own"
                return module
            def exec_module(self, module):
                module.hadamard_transform = len
        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == probe.PACKAGE:
                    return ModuleSpec(name, Own())
        sys.meta_path.insert(1, Finder())
        import fast_hadamard_transform
        assert fast_hadamard_transform.__loader__ == "its own" and not log
        assert type(fast_hadamard_transform.__spec__.loader) is Own
        """
    ).check()


def test_between_the_failure_and_the_stand_ins_first_line(site):
    """A thread that asks for the extension at that moment must not get a healthy, real one."""
    build_real(site.folder, init="raise OSError('no')\n")
    site.run(
        """
        import os, sys
        from hadamard_finder import finder
        from hadamard_finder.transform import surface
        home = os.path.join(os.path.dirname(finder.__file__), "standin")
        once = []
        def hook(event, arguments):
            # The import system opens the stand-in's file just before it runs it.
            if event == "open" and not once and str(arguments[0]).startswith(home):
                once.append(arguments[0])
                import fast_hadamard_transform_cuda
                once.append(probe.kind(fast_hadamard_transform_cuda))
        sys.addaudithook(hook)
        import fast_hadamard_transform
        assert "__init__" in once[0] and once[1] == "stand-in", once
        assert probe.check_whole() == "stand-in"
        """
    ).check()


def test_a_load_that_fails_in_every_way_leaves_the_spec_as_it_was(site):
    """A finder that keeps its specs hands it out again, and by then the package is repaired."""
    build_real(site.folder, init="raise OSError('the original')")
    torch = site.write("torch/__init__.py", "raise OSError('libtorch.so')")
    site.run(
        f"""
        import importlib, os, sys
        from importlib.machinery import PathFinder
        from pathlib import Path
        import faults, support
        kept = {{}}
        class Keeping:
            def find_spec(self, name, path=None, target=None):
                if name == probe.PACKAGE:
                    return kept.setdefault(name, PathFinder.find_spec(name))
        sys.meta_path.insert(1, Keeping())
        try:
            import fast_hadamard_transform
        except OSError as error:
            assert str(error) == "the original"
        else:
            raise AssertionError
        folder = Path({str(site.folder)!r})
        assert kept[probe.PACKAGE].origin == str(folder / probe.PACKAGE / "__init__.py")
        faults.build_real(folder)
        os.remove({str(torch)!r})
        os.rmdir({str(torch.parent)!r})
        sys.path.append(str(support.STUB_TORCH))
        importlib.invalidate_caches()
        import fast_hadamard_transform
        assert probe.check_whole() == "real" and not log
        """,
        torch=None,
        env={"PYTHONDONTWRITEBYTECODE": "1"},
    ).check()
