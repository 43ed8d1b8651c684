"""The four fixed Hadamard matrices of the 12N, 20N, 28N and 40N transforms.

Rows run top to bottom, entries are +1 and -1. Only the 12 x 12 matrix is symmetric.
"""

from __future__ import annotations

Rows = tuple[tuple[int, ...], ...]


def _character(q: int) -> list[int]:
    """The quadratic character of the prime field with q elements: 0, or 1 for squares, else -1."""
    squares = {i * i % q for i in range(1, q)}
    return [0] + [1 if i in squares else -1 for i in range(1, q)]


def _kronecker(a: Rows, b: Rows) -> Rows:
    return tuple(tuple(x * y for x in p for y in q) for p in a for q in b)


def _paley_one(q: int) -> Rows:
    """Paley's first construction (1933), order q + 1 for a prime q = 3 modulo 4."""
    chi = _character(q)
    core = [tuple(chi[(i - j) % q] + (i == j) for j in range(q)) for i in range(q)]
    return ((1,) + (-1,) * q, *((1, *row) for row in core))


def _paley_two(q: int) -> Rows:
    """Paley's second construction (1933), order 2 (q + 1) for a prime q = 1 modulo 4."""
    chi = _character(q)
    conference = [(0, *(1,) * q)] + [(1, *(chi[(i - j) % q] for j in range(q))) for i in range(q)]
    pair = {0: ((1, -1), (-1, -1)), 1: ((1, 1), (1, -1)), -1: ((-1, -1), (-1, 1))}
    return tuple(
        tuple(sign for entry in row for sign in pair[entry][half])
        for row in conference
        for half in (0, 1)
    )


def _williamson(a: str, b: str, c: str, d: str) -> Rows:
    """Williamson's construction (1944) from the first rows of four circulant matrices."""
    layout = (
        ((1, a), (1, b), (1, c), (1, d)),
        ((-1, b), (1, a), (-1, d), (1, c)),
        ((-1, c), (1, d), (1, a), (-1, b)),
        ((-1, d), (-1, c), (1, b), (1, a)),
    )
    size = len(a)
    return tuple(
        tuple(
            sign if first[(j - i) % size] == "+" else -sign
            for sign, first in blocks
            for j in range(size)
        )
        for blocks in layout
        for i in range(size)
    )


# Built at import, not on first use: torch.compile reads constants, and would trace a function.
MATRICES: dict[int, Rows] = {
    12: _paley_two(5),
    20: _williamson("+----", "+----", "++--+", "+-++-"),
    28: _williamson("+------", "++----+", "+-+--+-", "+--++--"),
    40: _kronecker(((1, 1), (1, -1)), _paley_one(19)),
}

# The same, one integer a row: bit j is set where the entry in column j is +1.
PACKED: dict[int, tuple[int, ...]] = {
    order: tuple(sum((sign > 0) << j for j, sign in enumerate(row)) for row in rows)
    for order, rows in MATRICES.items()
}
