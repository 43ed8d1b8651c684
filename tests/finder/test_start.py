"""The start of every Python (decision 11): what it loads, and the two start-up files."""

from __future__ import annotations

import inspect
import json
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import REPO, STUB_TORCH, run, run_python

STARTUP = REPO / "hadamard_finder" / "startup"
MODULES = "import sys, json; print(json.dumps(sorted(sys.modules)))"
NEVER = {"threading", "logging", "importlib.metadata", "importlib.abc", "torch", "typing", "re"}


@pytest.fixture(scope="module")
def venv(make_venv: Callable[..., Any], wheel: Path) -> Any:
    made = make_venv("start")
    made.install(wheel)
    return made


@pytest.mark.parametrize("flags", [(), ("-I",), ("-E", "-s"), ("-OO",), ("-X", "dev")])
def test_a_start_loads_our_two_modules_and_no_other(make_venv, venv, flags):
    bare = make_venv("bare")
    # So that site has the same files to read.
    (bare.site_packages / "hadamard_finder.pth").write_text("import sys\n")
    ours = set(venv.run(MODULES, flags=flags).json())
    without = set(bare.run(MODULES, flags=flags).json())
    assert ours - without == {"hadamard_finder", "hadamard_finder.finder"}
    assert without - ours == set()
    assert not NEVER & (ours - without)


def test_nothing_is_printed_at_a_start(venv):
    result = venv.run("", flags=("-W", "error", "-X", "dev")).check()
    assert result.out == ""
    assert result.err == ""


def test_an_unrelated_import_meets_nothing_of_ours(venv):
    code = "import json.tool, email.message, wsgiref\n" + MODULES
    assert "hadamard_finder.takeover" not in venv.run(code).json()


def test_the_pth_is_the_start_file_as_one_readable_line():
    (line,) = STARTUP.joinpath("hadamard_finder.start").read_text("utf-8-sig").splitlines()
    module, _, function = line.partition(":")
    expected = f"import {module}; {module}.{function}()\n"
    assert STARTUP.joinpath("hadamard_finder.pth").read_text("utf-8-sig") == expected
    assert "exec" not in expected


def test_the_start_file_follows_pep_829():
    """As site of Python 3.15 reads it: utf-8-sig, resolve_name, called without arguments, twice."""
    path = STARTUP / "hadamard_finder.start"
    strict = (
        {"strict": True} if "strict" in inspect.signature(pkgutil.resolve_name).parameters else {}
    )
    code = f"""
    import pkgutil, sys
    lines = open({str(path)!r}, encoding="utf-8-sig").read().splitlines()
    entries = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    assert entries == ["hadamard_finder.finder:start"], entries
    for _ in range(2):
        for entry in entries:
            assert all(part.isidentifier() for part in entry.replace(":", ".").split("."))
            assert pkgutil.resolve_name(entry, **{strict!r})() is None
    assert sum(type(item).__name__ == "Finder" for item in sys.meta_path) == 1
    """
    run_python(code, flags=("-S",), path=[REPO], cwd=STARTUP).check()


def test_the_pth_run_twice_starts_once(site, tmp_path: Path):
    # site reads a venv's files again where a tool adds its folder once more.
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "hadamard_finder.pth").write_bytes(
        STARTUP.joinpath("hadamard_finder.pth").read_bytes()
    )
    site.run(
        f"""
        import site, sys
        site.addsitedir({str(folder)!r})
        site.addsitedir({str(folder)!r})
        assert probe.finders() == 1
        from hadamard_finder import finder
        assert finder.is_finder(sys.meta_path[0])
        """,
        start=False,
    ).check()


def test_start_puts_one_finder_first_and_may_be_called_again(site):
    site.run(
        """
        import sys
        from hadamard_finder import finder
        assert not any(map(finder.is_finder, sys.meta_path))
        assert finder.start() is None
        first = sys.meta_path[0]
        assert finder.is_finder(first)
        class Other:
            pass
        sys.meta_path.insert(0, Other())
        finder.start()
        assert probe.finders() == 1 and sys.meta_path[1] is first
        """,
        start=False,
    ).check()


@pytest.mark.parametrize("broken", ["None", "()", "[type('Odd', (), {'__class__': 1})()]"])
def test_start_never_raises(site, broken: str):
    site.run(
        f"""
        import sys
        from hadamard_finder import finder
        whole, sys.meta_path = sys.meta_path, {broken}
        finder.start()
        sys.meta_path = whole
        """,
        start=False,
    ).check()


def test_a_second_copy_of_this_package_counts_the_first_ones_finder(site):
    site.run(
        """
        import sys
        first = sys.meta_path[0]
        for name in [name for name in sys.modules if name.startswith("hadamard_finder")]:
            del sys.modules[name]
        import hadamard_finder
        hadamard_finder.start()
        assert probe.finders() == 1 and sys.meta_path[0] is first
        import fast_hadamard_transform
        assert probe.kind(fast_hadamard_transform) == "stand-in"
        hadamard_finder.deactivate()
        assert probe.finders() == 0
        """
    ).check()


def test_whoever_was_there_before_the_start_may_have_missed_it(site):
    site.write("consumer.py", "hadamard_transform = None\n")
    site.run(
        """
        import consumer
        import hadamard_finder
        hadamard_finder.start()
        import fast_hadamard_transform
        assert consumer.hadamard_transform is fast_hadamard_transform.hadamard_transform
        """,
        start=False,
    ).check()


def test_whoever_came_after_the_start_has_a_none_of_its_own(site):
    site.write("consumer.py", "hadamard_transform = None\n")
    site.run(
        """
        import consumer, sys
        hadamard_transform = None  # in __main__, which was there before, but had tried nothing
        import fast_hadamard_transform
        import hadamard_finder
        hadamard_finder.deactivate()
        hadamard_finder.activate()
        assert consumer.hadamard_transform is None
        """
    ).check()


def test_main_is_not_taken_for_one_that_missed_it(venv):
    # The interpreter makes __main__ before site runs the start-up files.
    venv.run(
        """
        hadamard_transform = None
        import logging; logging.disable()
        import fast_hadamard_transform
        assert fast_hadamard_transform.__hadamard_finder__
        assert hadamard_transform is None
        """
    ).check()


SERVED = "import fast_hadamard_transform as p; print(p.__version__)"
WORKERS = """
import multiprocessing, sys

def work(_):
    import fast_hadamard_transform as package
    return package.__version__, package.hadamard_transform.__module__

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(1) as pool:
        print(pool.map_async(work, [0]).get(60)[0][0])
"""


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_children_of_multiprocessing_are_served(venv, tmp_path: Path, method: str):
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    result = run([venv.python, script, method]).check()
    assert result.out.split() == ["1.1.0+hadamard.finder"]


@pytest.mark.parametrize("flags", [("-I",), ("-E",), ("-s",), ("-O",), ("-X", "utf8")])
def test_interpreters_with_flags_are_served(venv, flags):
    assert venv.run(SERVED, flags=flags).check().out.split() == ["1.1.0+hadamard.finder"]


def test_grandchildren_are_served(venv):
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SERVED!r}], check=True)"
    assert venv.run(code).check().out.split() == ["1.1.0+hadamard.finder"]


def test_without_site_no_start_up_file_runs_and_activate_serves(venv):
    code = "import fast_hadamard_transform"
    path = [venv.site_packages, STUB_TORCH]
    assert venv.run(code, flags=("-S",), path=path).code == 1
    code = f"import hadamard_finder; hadamard_finder.activate()\n{SERVED}"
    assert venv.run(code, flags=("-S",), path=path).check().out.split() == ["1.1.0+hadamard.finder"]


def test_the_facade_loads_nothing_until_asked(venv):
    code = "import sys, json, hadamard_finder; dir(hadamard_finder); hadamard_finder.__version__\n"
    loaded = json.loads(venv.run(code + MODULES).check().out)
    assert {name for name in loaded if name.startswith("hadamard_finder")} == {
        "hadamard_finder",
        "hadamard_finder.finder",
    }


def test_deactivate_shortens_no_list_that_another_thread_walks(site):
    site.run(
        """
        import sys
        import hadamard_finder
        walk = iter(sys.meta_path)
        others = list(sys.meta_path)[1:]
        assert probe.finders() == 1 and hadamard_finder.finder.is_finder(next(walk))
        hadamard_finder.deactivate()
        assert probe.finders() == 0 and sys.meta_path == others
        assert list(walk) == others
        """
    ).check()
