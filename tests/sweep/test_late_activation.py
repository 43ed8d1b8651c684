"""The example of a late activation runs as it is, with and without the start-up file."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest
from support import REPO, START, run

EXAMPLE = REPO / "examples" / "late_activation.py"


@pytest.mark.parametrize("start", ["", START])
def test_the_example_tells_what_was_repaired_and_what_was_left(start: str, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the example transforms a tensor")
    code = f"{start}import runpy; runpy.run_path({str(EXAMPLE)!r}, run_name='__main__')"
    folders = [sysconfig.get_path("purelib"), REPO]
    result = run([sys.executable, "-S", "-c", code], path=folders, cwd=tmp_path).check()
    function = "repaired  hadamard_transform: None -> fast_hadamard_transform.hadamard_transform"
    failed = "`import fast_hadamard_transform as fht` failed"
    assert [line.strip() for line in result.out.splitlines()] == [
        "consumer.hadamard_transform after its import: None",
        "activate():",
        function,
        f"left      fht (line 8): None since {failed}, and may serve as a flag",
        f"left      HAS_FAST_HADAMARD (line 12): says that {failed}",
        "transform of ones: [2.0, 0.0, 0.0, 0.0]",
        "sweep(everything=True):",
        function,
        "repaired  fht: None -> module fast_hadamard_transform",
        "repaired  HAS_FAST_HADAMARD: False -> True",
        "HAS_FAST_HADAMARD: True",
    ]
    assert "is served by hadamard_finder" in result.err
