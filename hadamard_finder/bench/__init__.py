"""``python -m hadamard_finder bench``: the transform and a start of Python, measured here."""
