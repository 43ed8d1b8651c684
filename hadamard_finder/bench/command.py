"""The command line of the benchmark: what to measure, and the table, JSON and chart of it."""

import argparse
import datetime
import json
import math
import platform
import statistics
from dataclasses import asdict
from pathlib import Path

import torch

from hadamard_finder.bench import startup
from hadamard_finder.bench.transform import (
    DTYPES,
    WIDTHS,
    Row,
    keep_pages,
    measure,
    measure_small_call,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="cpu", help="a torch device (default: cpu)")
    parser.add_argument("--dtype", choices=DTYPES, help="one dtype (default: all three)")
    parser.add_argument("--width", type=_width, help="one width, a power of two (default: six)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a chart (extra: plot)")
    parser.add_argument(
        "--startup", action="store_true", help="measure what a start of Python pays instead"
    )


def main(arguments: argparse.Namespace) -> int:
    if arguments.startup:
        return startup.main(arguments.json)
    if arguments.plot is not None:
        # Before the minutes of measuring, not after them.
        from hadamard_finder.bench import chart
    device = torch.device(arguments.device)
    torch.empty(1, device=device)
    keep_pages()
    machine = describe_machine(device)
    print("  ".join(f"{key}: {value}" for key, value in machine.items()))
    print("time as a ratio to clone; peak memory beyond the input, in outputs\n")
    rows: list[Row] = []
    for dtype in (arguments.dtype,) if arguments.dtype else DTYPES:
        for width in (arguments.width,) if arguments.width else WIDTHS:
            row = measure(device, dtype, width)
            print(_as_text(row, header=not rows), flush=True)
            rows.append(row)
    _print_summary(rows)
    small = measure_small_call(device)
    print("\none call on 1 x 128 float32, as a ratio to the stack-based butterfly:")
    print(f"  butterfly: forward {small[0]:.2f}, forward+backward {small[1]:.2f}")
    if arguments.json is not None:
        document = {
            "machine": machine,
            "rows": [asdict(row) for row in rows],
            "small_call": {"forward": small[0], "forward_backward": small[1]},
        }
        arguments.json.write_text(json.dumps(document, indent=1) + "\n")
    if arguments.plot is not None:
        chart.draw(machine, [asdict(row) for row in rows], arguments.plot)
    return 0


def describe_machine(device: torch.device) -> dict[str, str]:
    name = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    except OSError:  # not Linux
        pass
    if device.type != "cpu":
        name = torch.get_device_module(device).get_device_name(device)
    return {
        "device": f"{device} ({name})",
        "threads": str(torch.get_num_threads()),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
    }


_COLUMNS = ("stacked", "linear", "butterfly", "compiled", "matmul", "real")


def _as_text(row: Row, *, header: bool) -> str:
    def line(dtype: str, width: str, what: str, clone: str, values: dict[str, float]) -> str:
        cells = "".join(
            f"{values[name]:>11.1f}" if name in values else f"{'-':>11}" for name in _COLUMNS
        )
        return f"{dtype:<9}{width:>6}  {what:<17}{clone:>9}{cells}"

    lines = []
    if header:
        titles = "".join(f"{name:>11}" for name in _COLUMNS)
        lines.append(f"{'dtype':<9}{'width':>6}  {'':<17}{'clone':>9}{titles}")
    clone = f"{row.clone_ms:.2f} ms"
    lines.append(line(row.dtype, str(row.width), "forward", clone, row.forward))
    lines.append(line("", "", "forward+backward", "", row.forward_backward))
    memory = f"{row.peak_memory['clone']:.1f}"
    lines.append(line("", "", "peak memory", memory, row.peak_memory))
    return "\n".join(lines)


def _print_summary(rows: list[Row]) -> None:
    print("\nforward, as fast as the stack-based butterfly (geometric mean over the rows above):")
    for name in ("butterfly", "compiled", "matmul"):
        logs = [math.log(row.forward["stacked"] / row.forward[name]) for row in rows]
        print(f"  {name:<10}{math.exp(statistics.fmean(logs)):6.1f} x")


def _width(text: str) -> int:
    width = int(text) if text.isdecimal() else 0
    if width < 1 or width & (width - 1):
        raise argparse.ArgumentTypeError(f"{text!r} is not a power of two")
    return width
