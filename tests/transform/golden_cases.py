"""The golden vectors, and the same arithmetic once more in plain NumPy."""

from pathlib import Path

import numpy as np
import torch

DATA = Path(__file__).parents[1] / "data"
_FILE = np.load(DATA / "kernel_vectors.npz")


class Case:
    def __init__(self, row) -> None:
        self.number, self.order = int(row["case"]), int(row["multiple"])
        self.dtype, self.scale = getattr(torch, str(row["dtype"])), float(row["scale"])
        self.x, self.y = (
            torch.from_numpy(_FILE[f"{name}{self.number}"].copy()).view(self.dtype) for name in "xy"
        )
        self.name = f"{self.number}-{row['dtype']}-{self.order}N-{self.x.shape[-1]}"


CASES = [Case(row) for row in _FILE["index"]]


def function_name(order: int) -> str:
    return "hadamard_transform" + (f"_{order}N" if order > 1 else "")


def differing(a: torch.Tensor, b: torch.Tensor) -> int:
    """How many elements differ in a bit; NaN equals NaN."""
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
    same = a.contiguous().view(bits) == b.contiguous().view(bits)
    return int((~(same | (a.isnan() & b.isnan()))).sum())


def golden_matrix(order: int) -> np.ndarray:
    text = (DATA / "hadamard_matrices.txt").read_text().split(f"order {order}\n")[1]
    rows = [line for line in text.split("order")[0].splitlines() if line]
    return np.array([[1 if sign == "+" else -1 for sign in row] for row in rows])


def reference(x: torch.Tensor, scale: float, order: int, transposed: bool) -> torch.Tensor:
    """What the golden README describes, stage by stage."""
    width = x.shape[-1]
    blocks = 1
    while blocks * order < width:
        blocks *= 2
    exact = np.float64 if x.dtype == torch.float64 else np.float32
    wide = np.zeros((*x.shape[:-1], order, blocks), exact)
    wide.reshape(*x.shape[:-1], -1)[..., :width] = x.to(torch.float64).numpy()
    h = 1
    with np.errstate(all="ignore"):
        while h < blocks:
            pairs = wide.reshape(*x.shape[:-1], order, -1, 2, h)
            low, high = pairs[..., 0, :], pairs[..., 1, :]
            wide = np.stack((low + high, low - high), -2).reshape(wide.shape)
            h *= 2
        if order > 1:
            matrix = golden_matrix(order)
            matrix = matrix.T if transposed else matrix
            rows = []
            for signs in matrix:
                total = wide[..., 0, :] * exact(signs[0])
                for j in range(1, order):
                    total = total + wide[..., j, :] * exact(signs[j])
                rows.append(total)
            wide = np.stack(rows, -2)
        wide = wide * exact(scale)
    return torch.from_numpy(wide).flatten(-2)[..., :width].to(x.dtype)
