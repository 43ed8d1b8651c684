"""Other tools that hook imports, stub modules or look at them, beside us."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from faults import REAL_INIT, build_real
from support import run


def home(module) -> tuple[Path, ...]:
    """Where an installed package lies, for children that see nothing installed of themselves."""
    return (Path(module.__file__).parents[1],)


# ---- import hooks


@pytest.mark.parametrize("state", ["real", "broken", "absent"])
def test_pytest_itself(site, state: str):
    """Its assertion rewriting stands ahead of us; importorskip is how its users ask."""
    if state != "absent":
        build_real(site.folder, init=REAL_INIT if state == "real" else "raise OSError('no')")
    site.write(
        "test_it.py",
        f"""
        import sys
        import pytest
        from hadamard_finder import finder

        def test_it():
            assert not finder.is_finder(sys.meta_path[0])
            found = pytest.importorskip("fast_hadamard_transform", minversion="1.1.0")
            assert (found.__version__ == "1.1.0") is {state == "real"}
            import probe
            assert probe.check_whole() == {"real" if state == "real" else "stand-in"!r}
        """,
    )
    code = (
        "import pytest, sys; sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', 'test_it.py']))"
    )
    result = site.run(code, behind=home(pytest), cwd=site.folder)
    assert "1 passed" in result.out, result


@pytest.mark.parametrize("names", ["['consumer']", "['consumer', 'fast_hadamard_transform']"])
def test_typeguard(site, names: str):
    typeguard = pytest.importorskip("typeguard", reason="typeguard is not installed")
    site.write(
        "consumer.py",
        """
        from fast_hadamard_transform import hadamard_transform
        def f(x: int) -> int:
            return x
        """,
    )
    site.run(
        f"""
        from typeguard import TypeCheckError, install_import_hook
        install_import_hook({names})
        import consumer
        try:
            consumer.f("")
        except TypeCheckError:
            pass
        else:
            raise AssertionError
        import fast_hadamard_transform
        assert probe.kind(fast_hadamard_transform) == "stand-in"
        assert consumer.hadamard_transform is fast_hadamard_transform.hadamard_transform
        assert len(log) == 1
        """,
        behind=home(typeguard),
    ).check()


def test_beartype(site):
    beartype = pytest.importorskip("beartype", reason="beartype is not installed")
    build_real(site.folder, init=REAL_INIT + "raise OSError('no')\n")
    site.run(
        """
        import warnings
        warnings.simplefilter("ignore")
        from beartype.claw import beartype_all
        beartype_all()
        import fast_hadamard_transform
        assert probe.check_whole() == "stand-in"
        assert len(log) == 1
        """,
        behind=home(beartype),
    ).check()


def test_importlib_metadata(site):
    importlib_metadata = pytest.importorskip("importlib_metadata", reason="not installed")
    site.run(
        """
        import importlib_metadata
        import fast_hadamard_transform
        assert probe.check_whole() == "stand-in"
        assert "fast_hadamard_transform" not in importlib_metadata.packages_distributions()
        """,
        behind=home(importlib_metadata),
    ).check()


EDITABLE = """
import os, sys
from pathlib import Path
HERE = Path(os.environ["HERE"])
FILES = {
    "fast_hadamard_transform": str(HERE / "fast_hadamard_transform/__init__.py"),
    probe.INTERFACE: str(HERE / "fast_hadamard_transform/fast_hadamard_transform_interface.py"),
    "fast_hadamard_transform_cuda": str(HERE / "fast_hadamard_transform_cuda.py"),
}
def install(tool, place):
    before = list(sys.meta_path)
    if tool == "setuptools":
        from setuptools.command.editable_wheel import _finder_template
        mapping = {
            "fast_hadamard_transform": str(HERE / "fast_hadamard_transform"),
            "fast_hadamard_transform_cuda": str(HERE / "fast_hadamard_transform_cuda"),
        }
        scope = {"__name__": "__editable___finder"}
        exec(_finder_template("__editable___finder", mapping, {}), scope)
        scope["install"]()
    else:
        from scikit_build_core.resources import _editable_redirect
        folder = str(HERE / "fast_hadamard_transform")
        _editable_redirect.install(FILES, {}, {"fast_hadamard_transform": [folder]})
    (new,) = [item for item in sys.meta_path if item not in before]
    sys.meta_path.remove(new)
    sys.meta_path.insert({"ahead": 0, "behind": 1, "last": len(sys.meta_path)}[place], new)
"""


@pytest.mark.parametrize("tool", ["setuptools", "scikit_build_core"])
@pytest.mark.parametrize("place", ["behind", "last"])
@pytest.mark.parametrize("state", ["real", "broken", "no-extension"])
def test_editable_installs(site, tmp_path: Path, tool: str, place: str, state: str):
    module = pytest.importorskip(tool, reason=f"{tool} is not installed")
    clone = tmp_path / "clone"
    build_real(
        clone,
        init=REAL_INIT + ("raise OSError('no')\n" if state == "broken" else ""),
        extension=None
        if state == "no-extension"
        else "def fast_hadamard_transform(x, s):\n    1\n",
    )
    site.run(
        EDITABLE
        + f"""
install({tool!r}, {place!r})
import fast_hadamard_transform
assert probe.check_whole() == {"real" if state == "real" else "stand-in"!r}
assert len(log) == {0 if state == "real" else 1}
""",
        behind=home(module),
        env={"HERE": str(clone)},
        flags=("-S", "-W", "ignore"),
    ).check()


@pytest.mark.parametrize("tool", ["setuptools", "scikit_build_core"])
def test_an_editable_finder_ahead_of_us_is_asked_first(site, tmp_path: Path, tool: str):
    """A working package is what it is; whom it hands a broken one we do not hear of."""
    module = pytest.importorskip(tool, reason=f"{tool} is not installed")
    clone = tmp_path / "clone"
    build_real(clone)
    site.run(
        EDITABLE
        + f"""
install({tool!r}, "ahead")
import fast_hadamard_transform
assert probe.check_whole() == "real" and not log
""",
        behind=home(module),
        env={"HERE": str(clone)},
        flags=("-S", "-W", "ignore"),
    ).check()


@pytest.mark.parametrize("state", ["real", "broken", "absent"])
@pytest.mark.parametrize("ahead", [True, False])
def test_wrapt_post_import_hooks(site, state: str, ahead: bool):
    """They fire where wrapt's finder is ahead of ours; behind, for the real package only."""
    wrapt = pytest.importorskip("wrapt", reason="wrapt is not installed")
    if state != "absent":
        build_real(site.folder, init=REAL_INIT + ("raise OSError" if state == "broken" else ""))
    both = {"fast_hadamard_transform", "fast_hadamard_transform_cuda"}
    behind = {"real": both, "broken": {"fast_hadamard_transform_cuda"}, "absent": set()}
    fires = both if ahead else behind[state]  # the broken one's extension is a healthy one
    site.run(
        f"""
        import sys
        import wrapt
        fired = []
        for name in (probe.PACKAGE, probe.EXTENSION):
            wrapt.register_post_import_hook(lambda module: fired.append(module.__name__), name)
        if not {ahead}:
            sys.meta_path.insert(1, sys.meta_path.pop(0))
            from hadamard_finder import finder
            sys.meta_path.sort(key=lambda item: not finder.is_finder(item))
        import fast_hadamard_transform
        assert probe.kind(fast_hadamard_transform) == {"real" if state == "real" else "stand-in"!r}
        assert set(fired) == {fires}, fired
        assert fast_hadamard_transform.hadamard_transform
        assert len(log) == {0 if state == "real" else 1}
        for module in probe.family().values():
            assert type(module.__loader__).__name__ != "Guard"
        """,
        behind=home(wrapt),
    ).check()


def test_a_finder_that_raises_stops_the_import_as_without_us(site):
    site.run(
        """
        import sys
        class Raises:
            def find_spec(self, name, path=None, target=None):
                if name == probe.PACKAGE:
                    raise KeyError("ahead")
        sys.meta_path.insert(0, Raises())
        try:
            import fast_hadamard_transform
        except KeyError:
            pass
        else:
            raise AssertionError
        sys.meta_path.pop(0)
        import fast_hadamard_transform
        assert probe.check_whole() == "stand-in"
        """
    ).check()


@pytest.mark.parametrize("state", ["real", "broken", "absent", "empty"])
def test_lazy_loader(site, state: str):
    """The recipe of the standard library's documentation."""
    if state == "empty" and sys.version_info >= (3, 12):
        pytest.skip("there the lazy class stays until the end and hides the emptiness")
    if state != "absent":
        tail = "raise OSError('no')\n" if state == "broken" else ""
        build_real(site.folder, init="" if state == "empty" else REAL_INIT + tail)
    site.run(
        f"""
        import importlib.util, sys
        spec = importlib.util.find_spec(probe.PACKAGE)
        loader = importlib.util.LazyLoader(spec.loader)
        spec.loader = loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[probe.PACKAGE] = module
        loader.exec_module(module)
        assert not log and probe.INTERFACE not in sys.modules
        module.hadamard_transform
        assert probe.check_whole() == {"real" if state == "real" else "stand-in"!r}
        assert len(log) == {0 if state == "real" else 1}
        assert type(module).__name__ == "module"
        """
    ).check()


def test_a_module_made_and_run_by_hand(site):
    build_real(site.folder, init="raise OSError('no')")
    site.run(
        """
        import importlib.util
        spec = importlib.util.find_spec(probe.PACKAGE)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert probe.kind(module) == "stand-in" and len(log) == 1
        import fast_hadamard_transform
        assert fast_hadamard_transform.hadamard_transform is module.hadamard_transform
        assert probe.check_whole() == "stand-in"
        """
    ).check()


# ---- stubs and mocks


def test_a_stub_before_us_and_after_us(site):
    """verl puts a bare module without a spec there where its own import fails."""
    site.run(
        """
        import sys, types
        import hadamard_finder
        stub = types.ModuleType(probe.PACKAGE)
        stub.hadamard_transform = len
        sys.modules[probe.PACKAGE] = stub
        hadamard_finder.activate()
        assert sys.modules[probe.PACKAGE] is stub and not log
        import fast_hadamard_transform_cuda
        assert probe.kind(fast_hadamard_transform_cuda) == "stand-in"
        del sys.modules[probe.PACKAGE]
        import fast_hadamard_transform
        assert probe.check_whole() == "stand-in"
        sys.modules[probe.PACKAGE] = stub
        hadamard_finder.activate()
        hadamard_finder.deactivate()
        assert sys.modules[probe.PACKAGE] is stub
        assert set(probe.family()) == {probe.PACKAGE}
        """,
        start=False,
    ).check()


def test_a_mock_patch_around_a_sweep(site):
    site.write("consumer.py", "hadamard_transform = None\n")
    site.run(
        """
        import consumer
        from unittest import mock
        import hadamard_finder
        with mock.patch("consumer.hadamard_transform", "fake"):
            hadamard_finder.activate()
            assert consumer.hadamard_transform == "fake"
        assert consumer.hadamard_transform is None
        hadamard_finder.sweep()
        import fast_hadamard_transform
        assert consumer.hadamard_transform is fast_hadamard_transform.hadamard_transform
        with mock.patch("consumer.hadamard_transform", None):
            hadamard_finder.sweep()
        assert consumer.hadamard_transform is fast_hadamard_transform.hadamard_transform
        """,
        start=False,
    ).check()


def test_mock_patch_dict_of_sys_modules(site):
    site.run(
        """
        import sys
        from unittest import mock
        with mock.patch.dict(sys.modules):
            import fast_hadamard_transform as inside
            assert probe.check_whole() == "stand-in"
        assert probe.family() == {}
        import fast_hadamard_transform as outside
        assert probe.check_whole() == "stand-in" and outside is not inside
        """
    ).check()


# ---- what looks at modules


@pytest.mark.parametrize("state", ["real", "broken", "absent"])
def test_python_m_of_the_interface(site, state: str):
    if state != "absent":
        build_real(site.folder, init=REAL_INIT + ("raise OSError" if state == "broken" else ""))
    site.run(
        """
        import runpy, sys, warnings
        warnings.simplefilter("ignore")
        names = runpy.run_module(probe.INTERFACE, run_name="__main__", alter_sys=True)
        assert callable(names["hadamard_transform"])
        names = runpy.run_module(probe.EXTENSION)
        assert callable(names["fast_hadamard_transform"])
        assert type(names["__loader__"]).__name__ != "Guard"
        """
    ).check()


def test_python_m_in_an_installed_environment(make_venv, wheel: Path):
    venv = make_venv("module")
    venv.install(wheel)
    command = [venv.python, "-W", "ignore", "-m"]
    run([*command, "fast_hadamard_transform.fast_hadamard_transform_interface"]).check()
    run([*command, "fast_hadamard_transform_cuda"]).check()
    missing = run([*command, "fast_hadamard_transform"])
    assert missing.code == 1
    assert "No module named fast_hadamard_transform.__main__" in missing.err


def test_pkgutil_and_resources_before_the_import(site):
    site.run(
        """
        import importlib.resources, pkgutil
        assert pkgutil.get_data(probe.PACKAGE, "__init__.py").startswith(b'\\"\\"\\"Stand-in')
        assert probe.check_whole() == "stand-in"
        found = {item.name for item in importlib.resources.files(probe.PACKAGE).iterdir()}
        assert {"__init__.py", "fast_hadamard_transform_interface.py"} <= found
        walked = pkgutil.walk_packages(
            __import__(probe.PACKAGE).__path__, prefix=probe.PACKAGE + "."
        )
        assert [item.name for item in walked] == [probe.INTERFACE]
        assert pkgutil.resolve_name(f"{probe.PACKAGE}:hadamard_transform")
        """
    ).check()


@pytest.mark.parametrize("first", ["real", "stand-in"])
def test_pickles_move_between_the_real_one_and_the_stand_in(site, tmp_path: Path, first: str):
    real = tmp_path / "real"
    build_real(real)
    file = tmp_path / "pickle"
    dump = f"""
    import pickle
    import fast_hadamard_transform as package
    import fast_hadamard_transform_cuda as extension
    from fast_hadamard_transform.fast_hadamard_transform_interface import hadamard_transform_12N
    things = (package.hadamard_transform, hadamard_transform_12N, extension.fast_hadamard_transform)
    with open({str(file)!r}, "wb") as stream:
        pickle.dump(things, stream)
    """
    load = f"""
    import pickle
    with open({str(file)!r}, "rb") as stream:
        function, other, raw = pickle.load(stream)
    import sys
    package = sys.modules[probe.PACKAGE]
    assert function is package.hadamard_transform
    assert other is sys.modules[probe.INTERFACE].hadamard_transform_12N
    assert raw is sys.modules[probe.EXTENSION].fast_hadamard_transform
    """
    paths = {"real": (real,), "stand-in": ()}
    second = "stand-in" if first == "real" else "real"
    kind = "\n    assert probe.check_whole() == {!r}\n"
    site.run(dump + kind.format(first), path=paths[first]).check()
    site.run(load + kind.format(second), path=paths[second]).check()


def test_torch_package(site):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    site.run(
        """
        import io, pickle
        from torch.package import PackageExporter, PackageImporter
        from fast_hadamard_transform import hadamard_transform
        buffer = io.BytesIO()
        with PackageExporter(buffer) as exporter:
            exporter.extern(["hadamard_finder.**", "scipy.**", "torch.**"])
            exporter.intern(["fast_hadamard_transform.**", "fast_hadamard_transform_cuda"])
            exporter.save_source_string(
                "mine", "from fast_hadamard_transform import hadamard_transform as found\\n"
            )
        buffer.seek(0)
        importer = PackageImporter(buffer)
        assert importer.import_module("mine").found is hadamard_transform
        import torch
        assert torch.equal(hadamard_transform(torch.ones(1, 2)), torch.tensor([[2.0, 0.0]]))
        """,
        torch=Path(torch.__file__).parents[1],
    ).check()
