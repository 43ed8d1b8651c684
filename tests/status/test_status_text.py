"""The text for people: aligned, on one screen, the next step last, coloured only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from faults import FAULTS
from support import STUB_TORCH, run

from hadamard_finder.repair.record import Leftover, Repair
from hadamard_finder.report import text
from hadamard_finder.report.facts import Check, Consumer, FinderState, Finding, Status

COMMAND = [sys.executable, "-m", "hadamard_finder", "status"]

GOLDEN = """\
import        stand-in (fast_hadamard_transform in a fresh process)
because       ImportError: libc10_cuda.so: cannot open shared object file
from          /site/hadamard_finder/standin/fast_hadamard_transform/__init__.py
finder        active, first on sys.meta_path
start-up      /site/hadamard_finder.pth: run by Python
                import hadamard_finder.finder; hadamard_finder.finder.start()
              /site/hadamard_finder.start: not run: it is for Python 3.15 and later
real package  fast-hadamard-transform 1.1.0, /site/fht/__init__.py: does not load
              ImportError: libc10_cuda.so: cannot open shared object file
torch         2.13.0+cpu, cpu build; devices: cpu
settings      HADAMARD_FINDER=auto (default)
              HADAMARD_FINDER_ALGORITHM=butterfly (default)
found         The extension needs a CUDA build of torch, but torch 2.13.0+cpu is a CPU build.
next          Nothing has to be done: the import works.
              For the CUDA kernel, install a CUDA build of torch, then the package again:
                pip install it"""


def test_the_whole_text(sample: Status) -> None:
    assert text.render(sample, colour=False) == str(sample) == GOLDEN


def test_colour_changes_nothing_but_colour(sample: Status) -> None:
    coloured = text.render(sample, colour=True)
    assert "\x1b[32mstand-in\x1b[0m" in coloured
    for code in ("\x1b[1m", "\x1b[32m", "\x1b[0m"):
        coloured = coloured.replace(code, "")
    assert coloured == GOLDEN


@pytest.mark.parametrize(
    ("changes", "colour"),
    [
        ({"works": False, "source": "none"}, "\x1b[31mnone: the import does not work\x1b[0m"),
        ({"works": False, "checks": ()}, "\x1b[31mstand-in: it fails the check\x1b[0m"),
        ({"source": "foreign"}, "\x1b[33mforeign\x1b[0m"),
        ({"source": "real"}, "\x1b[32mreal\x1b[0m"),
    ],
)
def test_the_colour_says_how_good_the_news_is(
    changes: dict[str, object], colour: str, sample: Status
) -> None:
    assert colour in text.render(replace(sample, **changes), colour=True)


def test_an_error_of_many_lines_takes_one(sample: Status) -> None:
    words = "\nA module that was compiled\n\n" + "using NumPy " * 100
    status = replace(
        sample,
        reason=f"ImportError: {words}",
        real=replace(sample.real, error=words, error_type=None),
    )
    lines = str(status).splitlines()
    assert len(lines) == len(GOLDEN.splitlines())
    assert lines[1].startswith("because       ImportError: A module that was compiled using NumPy")
    assert lines[8].startswith("              A module that was compiled using NumPy")
    assert lines[8].endswith(" ...")
    assert max(map(len, lines)) < 320


def test_every_line_starts_at_the_same_column() -> None:
    for line in GOLDEN.splitlines():
        assert line[13] == " "
        assert line[14] != " " or line[14:16] == "  "


def test_the_real_packages_other_outcomes(sample: Status) -> None:
    def outcome(**changes: object) -> str:
        status = replace(sample, real=replace(sample.real, error=None, **changes))
        (line,) = [x for x in str(status).splitlines() if x.startswith("real package")]
        return line.rpartition(": ")[2]

    assert outcome(loads=True, seconds=0.24) == "loads in 0.2 s"
    assert outcome(loads=None) == "not tried"
    assert outcome(timed_out=True) == "hangs"
    signal = replace(sample, real=replace(sample.real, signal="SIGILL"))
    assert "kills the interpreter: SIGILL" in str(signal)


def test_failed_checks_are_told_one_by_one(sample: Status) -> None:
    checks = (
        Check("values", "cpu", "float32", "failed", "width 2: 12 of 12 values are wrong"),
        Check("involution", "cpu", "float32", "passed", ""),
        Check("values", "cpu", "float64", "passed", ""),
        Check("values", "cuda:0", "float64", "unsupported", "raises"),
    )
    lines = str(replace(sample, checks=checks)).splitlines()
    first = lines.index("check         cpu: float32 failed, float64 passed")
    assert lines[first + 1 : first + 3] == [
        "              cuda:0: float64 unsupported",
        "                values, cpu, float32: width 2: 12 of 12 values are wrong",
    ]


def test_repairs_leftovers_and_consumers_have_their_lines(sample: Status) -> None:
    status = replace(
        sample,
        finder=FinderState(1, ("other.Finder",)),
        swept=(Repair("a", "f", "None", "the function", "a.py", 3),),
        leftovers=(
            Leftover("b", "flag", "it is a flag", "start earlier", "b.py", 4),
            Leftover("c", "g", "no source", "start earlier", None, None),
        ),
        consumers=(
            Consumer("dist", "1.0", "/x/a.py", 7, "import it", "it raises"),
            Consumer("dist", "1.0", "/x/b.py", 9, "import it", "it is None"),
        ),
    )
    lines = str(status).splitlines()
    assert "finder        active, behind other.Finder" in lines
    assert "repaired      a.f was None, is the function" in lines
    assert "left alone    b.flag: it is a flag (b.py:4)" in lines
    assert "              c.g: no source" in lines
    first = lines.index("consumers     dist 1.0")
    assert lines[first + 1 : first + 5] == [
        "                /x/a.py:7",
        "                  import it; where it is missing: it raises",
        "                /x/b.py:9",
        "                  import it; where it is missing: it is None",
    ]
    none = str(replace(sample, consumers=()))
    assert "consumers     no installed distribution imports the package" in none.splitlines()


def test_long_words_are_not_broken(sample: Status) -> None:
    path = "/" + "x" * 200
    found = replace(sample, findings=(Finding("code", "note", f"It is {path}.", "Do it."),))
    assert path in str(found)


def test_a_path_that_the_terminal_cannot_show(tmp_path: Path) -> None:
    folder = tmp_path / "h\u00e4uschen"
    FAULTS["no-interface"].build(folder)
    done = run(COMMAND, path=[folder, STUB_TORCH], env={"PYTHONIOENCODING": "ascii"})
    assert done.code == 0, done.err
    assert "h\\xe4uschen" in done.out


@pytest.mark.parametrize("name", ["sigbus", "no-cuda-runtime", "other-python"])
def test_the_command_line_ends_with_the_next_step(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    if fault.obstacle():
        pytest.skip(fault.obstacle())
    fault.build(tmp_path)
    done = run(COMMAND, path=[tmp_path, STUB_TORCH])
    lines = done.out.splitlines()
    assert done.code == (1 if fault.kills else 0)
    assert done.err == ""
    assert "\x1b" not in done.out
    assert len(lines) <= 24, done.out
    labels = [line[:14].strip() for line in lines if line[:14].strip()]
    assert (labels[0], labels[-1]) == ("import", "next")


def on_terminal(env: Mapping[str, str]) -> str:
    """Return what the command line writes to a pseudo-terminal."""
    code = f"import os, pty; os._exit(os.waitstatus_to_exitcode(pty.spawn({COMMAND!r})))"
    done = run([sys.executable, "-c", code], env={"TERM": "xterm", **env}, path=[STUB_TORCH])
    assert done.code == 0, done.out + done.err
    return done.out


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pty")
@pytest.mark.parametrize(
    ("env", "coloured"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
    ],
)
def test_a_terminal_gets_colour_unless_told_otherwise(env: dict[str, str], coloured: bool) -> None:
    shown = on_terminal(env)
    assert "stand-in" in shown
    assert ("\x1b[32m" in shown) == coloured
