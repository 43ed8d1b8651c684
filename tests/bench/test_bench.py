"""The benchmark runs as the README says and tells its figures; how large they are is not judged."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support import Result, run

pytest.importorskip("torch")


def bench(*arguments: object, cwd: Path) -> Result:
    command = [sys.executable, "-m", "hadamard_finder", "bench", *map(str, arguments)]
    return run(command, cwd=cwd, timeout=300)


def test_one_row(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    result = bench("--dtype", "float32", "--width", "8", "--json", file, cwd=tmp_path).check()

    document = json.loads(file.read_text())
    (row,) = document["rows"]
    methods = {"stacked", "linear", "butterfly", "compiled", "matmul"}
    assert (row["dtype"], row["width"], row["elements"]) == ("float32", 8, 2**22)
    assert row["forward"].keys() == row["forward_backward"].keys() == methods
    assert all(value > 0 for value in (*row["forward"].values(), *row["peak_memory"].values()))
    # The stack-based butterfly holds two inputs of a stage beside its output, a copy only that.
    assert row["peak_memory"]["clone"] == pytest.approx(1, abs=0.01)
    assert row["peak_memory"]["stacked"] == pytest.approx(3, abs=0.1)
    assert document["machine"]["torch"] in result.out
    assert "forward+backward" in result.out
    assert all(value > 0 for value in document["small_call"].values())
    assert "as fast as the stack-based butterfly" in result.out
    assert f"forward {document['small_call']['forward']:.2f}" in result.out.splitlines()[-1]


def test_start_up(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    code = (
        "from pathlib import Path; from hadamard_finder.bench import startup; "
        "startup.ROUNDS = startup.FEW_ROUNDS = 1; startup.main(Path('figures.json'))"
    )
    result = run([sys.executable, "-c", code], cwd=tmp_path, timeout=300).check()

    figures = json.loads(file.read_text())
    assert len(figures) == len(result.out.splitlines()) == 6
    assert all(isinstance(value, float) for value in figures.values())


@pytest.mark.parametrize("width", ["0", "12", "-4", "many"])
def test_a_width_that_is_no_power_of_two(width: str, tmp_path: Path) -> None:
    result = bench(f"--width={width}", cwd=tmp_path)

    assert result.code == 2
    assert f"{width!r} is not a power of two" in result.err


def test_a_chart(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra plot is not installed")
    from hadamard_finder.bench import chart

    figures = {"forward": {"stacked": 30.0, "butterfly": 8.0}}
    rows = [{"dtype": "float32", "width": width, **figures} for width in (64, 128)]
    machine = {"device": "cpu", "threads": "2", "torch": "2", "date": "2026-12-01"}
    chart.draw(machine, rows, tmp_path / "chart.png")

    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_it_says_what_to_install_before_it_measures(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.argv = ['', 'bench', '--plot', 'x.png'];"
        "from hadamard_finder.__main__ import main; main()"
    )
    result = run([sys.executable, "-c", code], cwd=tmp_path, timeout=100)

    assert result.code == 1
    assert "pip install 'hadamard-finder[plot]'" in result.err
    assert result.out == ""
