"""What is installed, by importlib_metadata or, where that is missing, by the standard library.

``pip install --no-deps`` keeps pip's hands off torch, and leaves importlib_metadata out, too; a
report on broken installations has to bear that.
"""

from __future__ import annotations

try:
    from importlib_metadata import PackageNotFoundError, distributions, version
except ImportError:
    from importlib.metadata import (  # type: ignore[assignment]
        PackageNotFoundError,
        distributions,
        version,
    )

__all__ = ["PackageNotFoundError", "distributions", "version"]
