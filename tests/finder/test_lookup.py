"""What the finder answers before anything runs (decisions 1 to 4 and 10)."""

from __future__ import annotations

import os

import pytest
from faults import build_real
from support import REPO


def test_the_stand_in_is_made_of_files(site):
    site.run(
        """
        import importlib.resources, inspect, os, pickle, pkgutil
        import fast_hadamard_transform as package
        import fast_hadamard_transform_cuda as extension
        from fast_hadamard_transform import fast_hadamard_transform_interface as interface

        for module in (package, interface, extension):
            assert os.path.isfile(module.__file__)
            assert inspect.getsource(module) == open(module.__file__, encoding="utf-8").read()
            assert module.__loader__.get_code(module.__name__) is not None
        assert package.__path__ == [os.path.dirname(package.__file__)]
        assert [found.name for found in pkgutil.iter_modules(package.__path__)] == [
            "fast_hadamard_transform_interface"
        ]
        assert pkgutil.get_data("fast_hadamard_transform", "__init__.py")
        assert importlib.resources.files(package).joinpath("__init__.py").is_file()
        function = package.hadamard_transform
        assert function.__module__ == probe.INTERFACE
        assert pickle.loads(pickle.dumps(function)) is function
        assert extension.fast_hadamard_transform.__module__ == probe.EXTENSION
        assert package.__version__ == probe.VERSION
        """
    ).check()


LOCK_SHAPE = """
import _frozen_importlib, sys
from hadamard_finder import finder
(ours,) = [item for item in sys.meta_path if finder.is_finder(item)]
before = set(sys.modules)
# What import calls where a module is not there or not ready: both take the module's lock.
asked = []
for name in ("_find_and_load", "_lock_unlock_module"):
    def spy(*args, real=getattr(_frozen_importlib, name)):
        asked.append(args[0])
        return real(*args)
    setattr(_frozen_importlib, name, spy)
import colorsys
assert asked == ["colorsys"], "the spies see nothing"
specs = [ours.find_spec(name) for name in (probe.PACKAGE, probe.EXTENSION)]
assert asked == ["colorsys"], asked
new = set(sys.modules) - before
assert new == {"colorsys"}, new
assert all(specs)
"""


@pytest.mark.parametrize("switch", ["auto", "off", "force", "nonsense"])
@pytest.mark.parametrize("state", ["absent", "real", "broken", "raising"])
def test_find_spec_imports_nothing(site, switch: str, state: str):
    if state != "absent":
        build_real(site.folder, init=None if state == "broken" else "")
    raising = """
import sys
class Raising:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("fast_hadamard_transform"):
            raise OSError("rebuild failed")
sys.meta_path.insert(1, Raising())
"""
    code = (raising if state == "raising" else "") + LOCK_SHAPE
    if switch == "off":
        code = code.replace("assert all(specs)", "assert specs == [None, None]")
    site.run(code, env={"HADAMARD_FINDER": switch}).check()


@pytest.mark.parametrize("purged", ["hadamard_finder.finder", "hadamard_finder"])
def test_find_spec_imports_nothing_after_a_purge_of_our_modules(site, purged: str):
    """Another thread may be importing them anew; to wait for it here would be a deadlock."""
    site.run(LOCK_SHAPE.replace("asked = []", f"asked = []; del sys.modules[{purged!r}]")).check()


def test_the_lookup_can_be_imported_by_those_who_read_it(site):
    site.run(
        """
        import hadamard_finder.lookup
        assert hadamard_finder.lookup.finder is hadamard_finder.finder
        import fast_hadamard_transform
        assert probe.check_whole() == "stand-in" and len(log) == 1
        """
    ).check()


@pytest.mark.parametrize("start", [None, "def find_spec"])
@pytest.mark.parametrize("real", [True, False])
def test_files_that_an_upgrade_is_still_writing_count_as_gone(site, tmp_path, start, real: bool):
    if real:
        build_real(site.folder)
    site.run(
        f"""
        import os, pathlib, shutil, sys
        from hadamard_finder import finder
        copy = {str(tmp_path / "copy")!r}
        shutil.copytree(os.path.dirname(finder.__file__), copy)
        finder.__file__ = os.path.join(copy, "finder.py")
        cut = pathlib.Path(copy, "lookup.py")
        whole = cut.read_text(encoding="utf-8")
        cut.write_text(whole[: whole.index({start!r}) if {start!r} else 0], encoding="utf-8")
        sys.dont_write_bytecode = True
        try:
            import fast_hadamard_transform
        except ModuleNotFoundError as error:
            assert not {real} and error.name == probe.PACKAGE
        else:
            assert {real} and not log
            del sys.modules[probe.PACKAGE]
        cut.write_text(whole, encoding="utf-8")
        import fast_hadamard_transform
        assert probe.check_whole() == ("real" if {real} else "stand-in")
        """
    ).check()


def test_find_spec_works_before_and_after_the_import(site):
    site.run(
        """
        import importlib.util, sys
        before = importlib.util.find_spec("fast_hadamard_transform")
        assert before is not None and before.name == "fast_hadamard_transform"
        assert "fast_hadamard_transform" not in sys.modules and "torch" not in sys.modules
        assert importlib.util.find_spec("fast_hadamard_transform_cuda") is not None
        assert not log
        import fast_hadamard_transform
        assert importlib.util.find_spec("fast_hadamard_transform") is (
            fast_hadamard_transform.__spec__
        )
        inner = importlib.util.find_spec(probe.INTERFACE)
        assert inner is sys.modules[probe.INTERFACE].__spec__
        """
    ).check()


@pytest.mark.parametrize(
    "name",
    ["fast_hadamard_transform2", "fast_hadamard", "fast_hadamard_transform_cuda_x", "torch", ""],
)
def test_names_are_compared_whole(site, name: str):
    site.run(
        f"""
        import sys
        from hadamard_finder import finder
        (ours,) = [item for item in sys.meta_path if finder.is_finder(item)]
        class Never:
            def find_spec(self, name, path=None, target=None):
                raise AssertionError("asked for " + name)
        sys.meta_path.insert(1, Never())
        assert ours.find_spec({name!r}) is None
        """
    ).check()


def test_the_walk_forwards_path_and_target_and_skips_whoever_cannot_find(site):
    site.run(
        """
        import sys
        from hadamard_finder import finder
        (ours,) = [item for item in sys.meta_path if finder.is_finder(item)]
        asked = []
        class Recorder:
            def find_spec(self, name, path=None, target=None):
                asked.append((name, path, target))
        class Legacy:
            pass
        sys.meta_path[1:1] = [Legacy(), None, Recorder()]
        ahead = Recorder()
        sys.meta_path.insert(0, ahead)
        ours.find_spec(probe.PACKAGE, ["p"], sys)
        assert [item for item in asked if item[0] == probe.PACKAGE] == [(probe.PACKAGE, ["p"], sys)]
        """
    ).check()


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("state", ["absent", "real"])
def test_a_finder_that_asks_all_others_in_turn(site, place: str, state: str):
    if state == "real":
        build_real(site.folder)
    site.run(
        f"""
        import sys
        class Delegating:
            def find_spec(self, name, path=None, target=None):
                for finder in sys.meta_path:
                    if finder is not self:
                        spec = finder.find_spec(name, path, target)
                        if spec is not None:
                            return spec
        sys.meta_path.insert({0 if place == "before" else 1}, Delegating())
        import fast_hadamard_transform
        assert probe.check_whole() == {"real" if state == "real" else "stand-in"!r}
        """
    ).check()


def test_finders_that_come_and_go_during_the_walk(site):
    site.run(
        """
        import sys
        class Leaving:
            def find_spec(self, name, path=None, target=None):
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
        sys.meta_path[1:1] = [Leaving(), Leaving(), Leaving()]
        import fast_hadamard_transform
        assert probe.check_whole() == "stand-in"
        assert not any(isinstance(item, Leaving) for item in sys.meta_path)
        """
    ).check()


def test_asked_after_it_was_taken_off_the_path(site):
    build_real(site.folder)
    site.run(
        """
        import sys
        from hadamard_finder import finder
        (ours,) = [item for item in sys.meta_path if finder.is_finder(item)]
        sys.meta_path.remove(ours)
        assert "site" in ours.find_spec(probe.PACKAGE).origin
        """
    ).check()


def test_a_finder_behind_that_raises_is_a_failed_load(site):
    site.run(
        """
        import sys
        class Rebuild:
            def find_spec(self, name, path=None, target=None):
                if name.startswith("fast_hadamard_transform"):
                    raise OSError("cmake failed")
        sys.meta_path.insert(1, Rebuild())
        import fast_hadamard_transform
        assert probe.check_whole() == "stand-in"
        assert len(log) == 1 and "OSError: cmake failed" in log[0], log
        """
    ).check()


def test_a_loader_of_the_old_kind_is_passed_on(site):
    site.run(
        """
        import sys, types
        from importlib.machinery import ModuleSpec
        class Old:
            def load_module(self, name):
                module = sys.modules[name] = types.ModuleType(name)
                module.hadamard_transform = "old"
                return module
        loader = Old()
        class OldFinder:
            def find_spec(self, name, path=None, target=None):
                if name == probe.PACKAGE:
                    return ModuleSpec(name, loader)
        sys.meta_path.insert(1, OldFinder())
        import fast_hadamard_transform
        assert fast_hadamard_transform.hadamard_transform == "old"
        assert fast_hadamard_transform.__spec__.loader is loader and not log
        """,
        flags=("-S", "-W", "ignore"),
    ).check()


def test_a_finder_that_keeps_its_specs(site):
    build_real(site.folder)
    site.run(
        """
        import importlib.util, sys
        from importlib.machinery import PathFinder
        kept = {}
        class Keeping:
            def find_spec(self, name, path=None, target=None):
                if name.startswith("fast_hadamard_transform") and path is None:
                    return kept.setdefault(name, PathFinder.find_spec(name))
        sys.meta_path.insert(1, Keeping())
        for _ in range(3):
            importlib.util.find_spec(probe.PACKAGE)
        import fast_hadamard_transform
        assert probe.check_whole() == "real" and not log
        assert type(fast_hadamard_transform.__loader__).__name__ == "SourceFileLoader"
        """
    ).check()


def test_the_guard_answers_for_the_loader_it_wraps(site):
    build_real(site.folder)
    site.run(
        """
        import copy, importlib.util
        spec = importlib.util.find_spec(probe.PACKAGE)
        loader = spec.loader
        assert loader.is_package(probe.PACKAGE) and loader.get_filename() == spec.origin
        assert loader.get_code(probe.PACKAGE).co_filename == spec.origin
        assert "hadamard_transform" in loader.get_source(probe.PACKAGE)
        assert not hasattr(loader, "no_such_method")
        # A copy is made without __init__: asked for anything, it must not look for itself forever.
        assert not hasattr(copy.copy(type(loader).__new__(type(loader))), "get_code")
        """
    ).check()


def test_the_loader_is_restored_before_the_real_package_runs(site):
    build_real(
        site.folder,
        init="seen = (__loader__, __spec__.loader)\nfrom fast_hadamard_transform."
        "fast_hadamard_transform_interface import hadamard_transform\n",
    )
    site.run(
        """
        import fast_hadamard_transform
        assert [type(item).__name__ for item in fast_hadamard_transform.seen] == (
            ["SourceFileLoader", "SourceFileLoader"]
        )
        assert probe.check_whole() == "real"
        """
    ).check()


def test_no_distribution_is_invented(site):
    site.run(
        """
        import importlib.metadata as metadata, sys
        from hadamard_finder import finder
        assert not any(
            hasattr(item, "find_distributions") for item in sys.meta_path if finder.is_finder(item)
        )
        import fast_hadamard_transform
        for name in ("fast_hadamard_transform", "fast-hadamard-transform"):
            try:
                metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
            raise AssertionError(name)
        """
    ).check()


def test_invalidate_caches_passes_over_us(site):
    site.run(
        """
        import importlib
        importlib.invalidate_caches()
        import fast_hadamard_transform
        importlib.invalidate_caches()
        assert probe.check_whole() == "stand-in"
        """
    ).check()


def test_a_git_clone_or_folder_in_the_working_directory(site):
    (site.folder / "fast_hadamard_transform" / "csrc").mkdir(parents=True)
    site.run(
        """
        import fast_hadamard_transform
        assert probe.check_whole() == "stand-in"
        assert "only a folder without __init__.py is there" in log[0]
        """,
        cwd=site.folder,
    ).check()


@pytest.mark.parametrize("ahead", [True, False])
def test_torch_may_come_from_any_finder(site, ahead: bool):
    # An editable torch, or a hook that arrived later, may stand ahead of us.
    site.run(
        f"""
        import sys
        from importlib.machinery import PathFinder
        stub = [item for item in sys.path if item.endswith("stub_torch")]
        for item in stub:
            sys.path.remove(item)
        class Editable:
            def find_spec(self, name, path=None, target=None):
                if name == "torch":
                    return PathFinder.find_spec(name, stub)
        sys.meta_path.insert({0 if ahead else 1}, Editable())
        import fast_hadamard_transform
        assert probe.check_whole() == "stand-in"
        """
    ).check()


@pytest.mark.parametrize("behaviour", ["serves", "raises"])
def test_a_finder_that_knows_submodules_by_their_full_names(site, behaviour: str):
    """As scikit-build-core's editable one: it never looks at the package's __path__."""
    build_real(site.folder, init="raise OSError('no')")
    site.run(
        f"""
        import sys
        from importlib.util import spec_from_file_location
        asked = []
        class Editable:
            def find_spec(self, name, path=None, target=None):
                if name == probe.INTERFACE:
                    asked.append(name)
                    if {behaviour == "raises"}:
                        raise OSError("rebuild failed")
                    file = {str(site.folder)!r} + "/" + name.replace(".", "/") + ".py"
                    return spec_from_file_location(name, file)
        sys.meta_path.insert(1, Editable())
        import fast_hadamard_transform
        assert probe.check_whole() == "stand-in"
        assert probe.kind(sys.modules[probe.INTERFACE]) == "stand-in" and not asked
        """
    ).check()


def test_a_finder_that_knows_the_real_submodules_by_name_serves_them(site):
    build_real(site.folder)
    site.run(
        f"""
        import sys
        from importlib.util import spec_from_file_location
        class Editable:
            def find_spec(self, name, path=None, target=None):
                if name == probe.INTERFACE:
                    file = {str(site.folder)!r} + "/" + name.replace(".", "/") + ".py"
                    return spec_from_file_location(name, file)
        sys.meta_path.insert(1, Editable())
        import fast_hadamard_transform
        assert probe.check_whole() == "real"
        """
    ).check()


def test_a_relative_path_entry_and_a_change_of_directory(site):
    # A relative entry of the path leaves a relative __file__ on some Pythons.
    site.run(
        """
        import os
        os.chdir("/")
        import fast_hadamard_transform
        assert probe.check_whole() == "stand-in"
        """,
        cwd=REPO,
        env={"PYTHONPATH": os.pathsep.join([".", "tests", "tests/stub_torch"])},
    ).check()


def test_two_threads_may_ask_for_the_same_name_at_once(site):
    site.run(
        """
        import sys, threading
        from hadamard_finder import finder
        (ours,) = [item for item in sys.meta_path if finder.is_finder(item)]
        asked, answered, seen = threading.Event(), threading.Event(), []
        class Slow:
            def find_spec(self, name, path=None, target=None):
                if name == probe.PACKAGE and threading.current_thread().name == "slow":
                    asked.set()
                    answered.wait(30)
        sys.meta_path.insert(1, Slow())
        thread = threading.Thread(
            target=lambda: seen.append(ours.find_spec(probe.PACKAGE)), name="slow", daemon=True
        )
        thread.start()
        assert asked.wait(30)
        seen.append(ours.find_spec(probe.PACKAGE))
        answered.set()
        thread.join(30)
        assert len(seen) == 2 and all(seen), seen
        """
    ).check()


def test_a_kept_spec_of_a_broken_package_is_guarded_once(site):
    build_real(site.folder, init="raise OSError('the original')")
    site.run(
        """
        import importlib.util, sys
        from importlib.machinery import PathFinder
        from hadamard_finder import finder
        kept = {}
        class Keeping:
            def find_spec(self, name, path=None, target=None):
                if name == probe.PACKAGE:
                    return kept.setdefault(name, PathFinder.find_spec(name))
        sys.meta_path.insert(1, Keeping())
        for _ in range(3):
            loader = importlib.util.find_spec(probe.PACKAGE).loader
            assert type(loader.real).__name__ == "SourceFileLoader"
        import fast_hadamard_transform
        assert probe.check_whole() == "stand-in"
        assert finder.STATE.causes[probe.PACKAGE] == "OSError: the original"
        """
    ).check()


def test_off_the_path_it_walks_a_copy_too(site):
    site.run(
        """
        import sys
        from hadamard_finder import finder
        (ours,) = [item for item in sys.meta_path if finder.is_finder(item)]
        sys.meta_path.remove(ours)
        asked = []
        class Leaving:
            def find_spec(self, name, path=None, target=None):
                asked.append(name)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
        sys.meta_path[:0] = [Leaving(), Leaving()]
        ours.find_spec(probe.PACKAGE)
        assert asked.count(probe.PACKAGE) == 2, asked
        """
    ).check()


@pytest.mark.parametrize(
    "name", ["fast_hadamard_transform/__init__", "fast_hadamard_transform_cuda"]
)
def test_the_files_of_the_stand_in_say_what_they_are(site, name: str):
    """Whoever runs them without the guard, torch.package for one, can tell them apart, too."""
    site.run(
        f"""
        import os, runpy
        from hadamard_finder import finder
        names = runpy.run_path(os.path.dirname(finder.__file__) + "/standin/{name}.py")
        assert names[finder.MARKER] is True
        """
    ).check()
