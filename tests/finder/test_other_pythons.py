"""The torch-free part on every other Python of this machine: all in one child each."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import REPO, STUB_TORCH, TESTS, other_pythons, run_python

PYTHONS = other_pythons()
if not PYTHONS:
    pytestmark = pytest.mark.skip(reason="no other supported Python was found on this machine")

BEGIN = """
import importlib, os, sys, tempfile
from pathlib import Path
import hadamard_finder.finder
before = set(sys.modules)
hadamard_finder.finder.start()
assert set(sys.modules) == before, set(sys.modules) - before
import faults, probe, support
import hadamard_finder
log = probe.listen()
HERE = Path(tempfile.mkdtemp(dir=os.environ["HERE"]))
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

def lay(state):
    faults.clear(HERE)
    if state == "real":
        faults.build_real(HERE)
    elif state != "absent":
        faults.FAULTS[state].build(HERE)
    importlib.invalidate_caches()

def fresh():
    hadamard_finder.deactivate()
    for name in probe.family():
        del sys.modules[name]
    hadamard_finder.finder.STATE.told.clear()
    log.clear()
    hadamard_finder.finder.start()
"""
BODIES = {
    "real": """
lay("real")
import fast_hadamard_transform as package
assert probe.check_whole() == "real" and not log
assert importlib.reload(package) is package and probe.check_whole() == "real"
lay("absent")
importlib.reload(package)
assert probe.check_whole() == "stand-in" and len(log) == 1
lay("real")
importlib.reload(package)
assert probe.check_whole() == "real"
""",
    "switch": """
lay("real")
os.environ["HADAMARD_FINDER"] = "force"
import fast_hadamard_transform
assert probe.check_whole() == "stand-in" and len(log) == 1
fresh()
lay("absent")
os.environ["HADAMARD_FINDER"] = "off"
try:
    import fast_hadamard_transform
except ModuleNotFoundError:
    pass
else:
    raise AssertionError
""",
    "block": """
sys.modules[probe.EXTENSION] = None
import fast_hadamard_transform
assert probe.check_whole() == "stand-in"
assert sys.modules[probe.INTERFACE].fast_hadamard_transform_cuda is None
fresh()
sys.modules[probe.PACKAGE] = None
try:
    import fast_hadamard_transform
except ModuleNotFoundError:
    pass
else:
    raise AssertionError
""",
    "lazy": """
import importlib.util
for state in ("absent", "late-failure", "real"):
    fresh()
    lay(state)
    spec = importlib.util.find_spec(probe.PACKAGE)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = sys.modules[probe.PACKAGE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert probe.INTERFACE not in sys.modules
    module.hadamard_transform
    assert probe.check_whole() == ("real" if state == "real" else "stand-in")
""",
    "looks": """
import inspect, pickle, pkgutil, runpy, warnings
import importlib.resources
lay("ctypes")
import fast_hadamard_transform as package
assert probe.check_whole() == "stand-in"
assert inspect.getsource(package) == Path(package.__file__).read_text()
assert pickle.loads(pickle.dumps(package.hadamard_transform)) is package.hadamard_transform
assert pkgutil.get_data(probe.PACKAGE, "__init__.py")
assert importlib.resources.files(probe.PACKAGE).joinpath("__init__.py").is_file()
warnings.simplefilter("ignore")
assert runpy.run_module(probe.INTERFACE, run_name="__main__")["hadamard_transform"]
""",
    "threads": """
import threading
for state in ("real", "absent", "missing-extension"):
    fresh()
    lay(state)
    barrier, found = threading.Barrier(8), []
    def work(number):
        barrier.wait()
        if number % 2:
            import fast_hadamard_transform
            found.append(fast_hadamard_transform.hadamard_transform)
        else:
            import fast_hadamard_transform_cuda
            assert fast_hadamard_transform_cuda.fast_hadamard_transform
    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert len(found) == 4 and len(set(found)) == 1
    assert probe.check_whole() == ("real" if state == "real" else "stand-in")
""",
    "interrupt": """
faults.build_real(HERE, init=faults.REAL_INIT + "raise KeyboardInterrupt")
importlib.invalidate_caches()
try:
    import fast_hadamard_transform
except KeyboardInterrupt:
    pass
assert probe.family() == {}
""",
}
MATRIX = """
for name, fault in faults.FAULTS.items():
    if fault.kills or fault.obstacle():
        continue
    for target in (probe.PACKAGE, probe.EXTENSION) if fault.extension else (probe.PACKAGE,):
        fresh()
        # A folder each, and none is cleared: dlopen knows a library by its inode.
        sys.path[0] = tempfile.mkdtemp(dir=HERE)
        fault.build(Path(sys.path[0]))
        module = importlib.import_module(target)
        probe.check_whole()
        assert probe.kind(module) == "stand-in", name
        expected = {target} if target == probe.EXTENSION else {
            probe.PACKAGE, probe.INTERFACE, probe.EXTENSION
        }
        assert set(probe.family()) == expected, (name, set(probe.family()))
        assert len(log) == 1 and fault.text in log[0], (name, log)
        if name == "thread-goes-on":
            gate = sys.modules["late_gate"]
            gate.go.set()
            gate.thread.join(30)
            assert set(probe.family()) == expected

"""


def ids(python: Path) -> str:
    return python.parent.parent.name


@pytest.mark.parametrize("python", PYTHONS, ids=ids)
@pytest.mark.parametrize("name", [*BODIES, "matrix"])
def test_on(python: Path, name: str, tmp_path: Path):
    run_python(
        BEGIN + (MATRIX if name == "matrix" else BODIES[name]),
        flags=("-S",),
        python=python,
        path=[STUB_TORCH, TESTS, REPO],
        env={"HERE": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=tmp_path,
    ).check()


@pytest.mark.parametrize("python", PYTHONS, ids=ids)
def test_an_environment_of_it_is_served(python: Path, make_venv, wheel: Path):
    venv = make_venv("other", python=python)
    code = "import sys, json; print(json.dumps(sorted(sys.modules)))"
    (venv.site_packages / "hadamard_finder.pth").write_text("import sys\n")
    bare = set(venv.run(code).json())
    venv.install(wheel)
    assert set(venv.run(code).json()) - bare == {"hadamard_finder", "hadamard_finder.finder"}
    result = venv.run("import fast_hadamard_transform as p; print(p.__version__)", flags=("-I",))
    assert result.check().out.split() == ["1.1.0+hadamard.finder"]
