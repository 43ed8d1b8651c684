"""Draws the one chart of the benchmark. Needs matplotlib: ``pip install hadamard-finder[plot]``."""

from pathlib import Path
from typing import Any

try:
    import matplotlib
except ImportError as error:
    raise ImportError("--plot needs matplotlib: pip install 'hadamard-finder[plot]'") from error

# Okabe and Ito's colours, which people with any colour vision can tell apart.
_STYLES = {
    "stacked": ("#999999", "stack-based butterfly"),
    "linear": ("#E69F00", "F.linear, full matrix"),
    "butterfly": ("#0072B2", "butterfly (default, bit-exact)"),
    "compiled": ("#009E73", "compiled (bit-exact)"),
    "matmul": ("#D55E00", "matmul"),
    "real": ("#000000", "CUDA package"),
}


def draw(machine: dict[str, str], rows: list[dict[str, Any]], file: Path) -> None:
    """Write a chart of the forward time over the width, one panel a dtype, as PNG, SVG or PDF."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    dtypes = list(dict.fromkeys(row["dtype"] for row in rows))
    figure, panels = pyplot.subplots(
        1, len(dtypes), figsize=(4.2 * len(dtypes), 4.6), sharey=True, squeeze=False
    )
    for panel, dtype in zip(panels[0], dtypes, strict=True):
        mine = [row for row in rows if row["dtype"] == dtype]
        for name, (colour, label) in _STYLES.items():
            points = [
                (row["width"], row["forward"][name]) for row in mine if name in row["forward"]
            ]
            if points:
                panel.plot(*zip(*points, strict=True), "o-", color=colour, label=label, ms=4)
        panel.axhline(1, color="#CCCCCC", lw=1, zorder=0)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log", base=2)
        panel.yaxis.set_major_formatter(matplotlib.ticker.ScalarFormatter())
        panel.set_title(dtype)
        panel.set_xlabel("width of the transform")
        panel.grid(alpha=0.25)
    panels[0][0].set_ylabel("time, in clones of the tensor (less is better)")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=3, frameon=False)
    note = f"{machine['device']}, {machine['threads']} threads, torch {machine['torch']}"
    figure.text(0.99, 0.01, f"{note}, {machine['date']}", ha="right", fontsize=7, color="#666666")
    figure.tight_layout(rect=(0, 0.03, 1, 0.88))
    figure.savefig(file, dpi=130)
    pyplot.close(figure)
