"""``python -m hadamard_finder bench --startup``: what every process pays, and the first import.

Each figure is a median over child processes that take turns with their counterpart.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from hadamard_finder.report.startup_files import SHIPPED

ROUNDS = 60
FEW_ROUNDS = 5

# Times the start-up files of one site directory, as site does it, in a fresh interpreter.
_SITE = """
import site, sys, time
start = time.perf_counter_ns()
site.addsitedir(sys.argv[1])
print(time.perf_counter_ns() - start)
"""
_UNRELATED = """
import sys, timeit
sys.path.insert(0, sys.argv[1])
from hadamard_finder.finder import Finder
find_spec = Finder().find_spec
print(min(timeit.repeat(lambda: find_spec("json", None, None), number=100_000)) * 1e4
    - min(timeit.repeat(lambda: None, number=100_000)) * 1e4)
"""
# torch's import leaves a full collection due at any moment, which would be counted as ours.
_FIRST_IMPORT = """
import gc, logging, sys, time
sys.path.insert(0, sys.argv[1])
logging.disable()
import torch
from hadamard_finder.finder import start
start()
gc.collect()
begin = time.perf_counter_ns()
import fast_hadamard_transform
print(time.perf_counter_ns() - begin)
"""
_SWEEP = """
import gc, logging, sys, time, types
sys.path.insert(0, sys.argv[1])
logging.disable()
import hadamard_finder
from hadamard_finder.finder import STATE
hadamard_finder.activate()
for number in range(5000):
    name = f"filler_{number}"
    sys.modules[name] = types.ModuleType(name)
    STATE.missed[name] = id(sys.modules[name])
gc.collect()
begin = time.perf_counter_ns()
hadamard_finder.sweep()
print(time.perf_counter_ns() - begin)
"""


def main(json_file: Path | None) -> int:
    """Print the figures and write them to ``json_file`` where one is given. Returns 0."""
    with tempfile.TemporaryDirectory() as folder:
        sites = _make_sites(Path(folder))
        times: dict[str, list[float]] = {name: [] for name in sites}
        for _ in range(ROUNDS + 1):
            for name, site in sites.items():
                times[name].append(_child(_SITE, site, "-I", "-S"))
        # The first round wrote the bytecode.
        medians = {name: statistics.median(values[1:]) for name, values in times.items()}
        ours = sites["ours"]
        figures = {
            "start-up file, ms": (medians["ours"] - medians["empty"]) / 1e6,
            "floor: one-line module in an empty package, ms": (
                (medians["floor"] - medians["empty"]) / 1e6
            ),
            "import of another name, microseconds": _median(_UNRELATED, ours) / 1e3,
            "first import of the stand-in after torch, ms": _median(_FIRST_IMPORT, ours) / 1e6,
            "sweep of 5,000 modules by name, ms": _median(_SWEEP, ours) / 1e6,
        }
    figures["start-up file, ratio to the floor"] = (
        figures["start-up file, ms"] / figures["floor: one-line module in an empty package, ms"]
    )
    for name, value in figures.items():
        print(f"{name:<50}{value:9.3f}")
    if json_file is not None:
        json_file.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def _make_sites(folder: Path) -> dict[str, Path]:
    """Three site directories: with nothing, with the least start-up file possible, with ours."""
    sites = {name: folder / name for name in ("empty", "floor", "ours")}
    for site in sites.values():
        site.mkdir()
    package = sites["floor"] / "floor_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "module.py").write_text("def start(): pass\n")
    (sites["floor"] / "floor.pth").write_text(
        "import floor_package.module; floor_package.module.start()\n"
    )
    here = Path(__file__).parent.parent
    shutil.copytree(here, sites["ours"] / here.name, ignore=shutil.ignore_patterns("__pycache__"))
    # Not a copy of the file: a wheel has it at the root of site-packages only.
    (sites["ours"] / "hadamard_finder.pth").write_text(SHIPPED["hadamard_finder.pth"])
    return sites


def _median(code: str, site: Path) -> float:
    _child(code, site)
    return statistics.median(_child(code, site) for _ in range(FEW_ROUNDS))


def _child(code: str, site: Path, *flags: str) -> float:
    command = [sys.executable, *flags, "-c", code, str(site)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(output.splitlines()[-1])
