"""Each example runs as its docstring says and shows what it says to expect.

Two run elsewhere: torchrun_dtensor.py in tests/processes, megatron_dsa.py and ray_workers.py with
their requirements in tests/consumers.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest
from support import REPO, Result, run

EXAMPLES = sorted((REPO / "examples").glob("*.py"))
BY_NAME = [pytest.param(path, id=path.name) for path in EXAMPLES]


def example(name: str, cwd: Path) -> Result:
    pytest.importorskip("torch")
    # Inductor's first compilation takes half a minute of two idle cores, and these may be busy.
    return run([sys.executable, REPO / "examples" / name], cwd=cwd, timeout=400)


@pytest.mark.parametrize("path", BY_NAME)
def test_it_is_short_and_says_what_to_expect(path: Path) -> None:
    text = path.read_text()

    assert text.count("\n") < 80
    assert "What to expect:" in (ast.get_docstring(ast.parse(text)) or "")


@pytest.mark.parametrize("path", BY_NAME)
def test_a_test_runs_it(path: Path) -> None:
    mentions = re.compile(rf'"{re.escape(path.name)}"')
    tests = (REPO / "tests").glob("*/test_*.py")

    assert any(mentions.search(test.read_text()) for test in tests)


def test_deepseek_indexer(tmp_path: Path) -> None:
    result = example("deepseek_indexer.py", tmp_path).check()

    shares = dict(re.findall(r"^(\S.*?) +([\d.]+)% of the picks", result.out, re.MULTILINE))
    assert "standin" in result.out.splitlines()[0]
    assert float(shares["rotated"]) > 99
    assert float(shares["fp8"]) == pytest.approx(96, abs=1)
    assert float(shares["rotated, then fp8"]) == pytest.approx(99, abs=0.5)


def test_quarot_linear(tmp_path: Path) -> None:
    result = example("quarot_linear.py", tmp_path).check()

    lines = re.findall(r"width (\d+): .* bits: ([\d.]+)%, rotated ([\d.]+)%", result.out)
    assert [width for width, _, _ in lines] == ["1024", "1280"]
    for _, plain, rotated in lines:
        assert float(plain) == pytest.approx(25, abs=1)
        assert float(rotated) == pytest.approx(18, abs=1)


def test_compile_fullgraph(tmp_path: Path) -> None:
    result = example("compile_fullgraph.py", tmp_path).check()

    assert result.out.count("forward and backward equal eager bit for bit") == 3
    assert "compiled as one graph" in result.out
