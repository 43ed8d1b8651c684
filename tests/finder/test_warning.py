"""The one warning of a process (decision 12), and who gives it."""

from __future__ import annotations

import itertools

import pytest
from faults import build_real

NAMES = {
    "package": "import fast_hadamard_transform",
    "interface": "import fast_hadamard_transform.fast_hadamard_transform_interface",
    "extension": "import fast_hadamard_transform_cuda",
}


@pytest.mark.parametrize("order", list(itertools.permutations(NAMES)), ids="-".join)
@pytest.mark.parametrize("state", ["absent", "broken"])
def test_one_whatever_the_order(site, order, state: str):
    if state == "broken":
        build_real(site.folder, extension="raise OSError('driver')")
    first = "fast_hadamard_transform" + ("_cuda" if order[0] == "extension" else "")
    imports = "\n".join(NAMES[name] for name in order)
    site.run(
        f"{imports}\nassert probe.check_whole() == 'stand-in'\nassert len(log) == 1, log\n"
        f"assert log[0].startswith('WARNING {first} is served by'), log\n"
        f"assert {state == 'absent'} or 'OSError: driver' in log[0], log\n"
        "import hadamard_finder, importlib\n"
        "hadamard_finder.deactivate(); hadamard_finder.activate()\n"
        "importlib.reload(__import__('fast_hadamard_transform'))\n"
        "assert probe.check_whole() == 'stand-in'\nassert len(log) == 1, log\n"
    ).check()


def test_what_it_says(site):
    site.run(
        """
        import fast_hadamard_transform
        (line,) = log
        for part in ("fast_hadamard_transform is not installed", "bit for bit", "slower",
                     "python -m hadamard_finder status", "setLevel(logging.ERROR)"):
            assert part in line, part
        """
    ).check()


def test_it_reaches_stderr_without_any_logging_set_up(site):
    result = site.run(
        "import logging; logger = logging.getLogger('hadamard_finder')\n"
        "logger.handlers.clear(); logger.propagate = True\nimport fast_hadamard_transform"
    ).check()
    assert result.err.count("is served by hadamard_finder") == 1
    assert not result.out


def test_it_can_be_silenced_as_it_says(site):
    result = site.run(
        "import logging; logger = logging.getLogger('hadamard_finder')\n"
        "logger.handlers.clear(); logger.propagate = True; logger.setLevel(logging.ERROR)\n"
        "import fast_hadamard_transform"
    ).check()
    assert result.err == ""
    assert result.out == ""


@pytest.mark.parametrize(
    ("env", "level"),
    [
        ({}, "WARNING"),
        ({"RANK": "0"}, "WARNING"),
        ({"RANK": "1"}, "DEBUG"),
        ({"RANK": "0", "LOCAL_RANK": "1"}, "WARNING"),
        ({"RANK": "8", "LOCAL_RANK": "0"}, "DEBUG"),
        ({"LOCAL_RANK": "0"}, "WARNING"),
        ({"LOCAL_RANK": "3"}, "DEBUG"),
        ({"RANK": "", "LOCAL_RANK": ""}, "WARNING"),
        ({"RANK": "", "LOCAL_RANK": "2"}, "DEBUG"),
        ({"RANK": " "}, "WARNING"),
    ],
)
def test_rank_0_speaks_for_all(site, env, level: str):
    site.run(
        f"import fast_hadamard_transform; assert [line.split()[0] for line in log] == [{level!r}]",
        env=env,
    ).check()


def test_python_warnings_turned_into_errors_do_not_matter(site):
    site.run(
        "import fast_hadamard_transform; assert probe.check_whole() == 'stand-in'",
        flags=("-S", "-W", "error", "-X", "dev"),
    ).check()
