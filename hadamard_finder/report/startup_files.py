"""The start-up files in the site directories: are they ours, and does Python run them?"""

from __future__ import annotations

import os
import site
import stat
import sys
from pathlib import Path

from hadamard_finder.report.facts import StartupFile

# What the wheel brings. It does not bring these files twice, so there is nothing to compare with.
SHIPPED = {
    "hadamard_finder.pth": "import hadamard_finder.finder; hadamard_finder.finder.start()",
    "hadamard_finder.start": "hadamard_finder.finder:start",
}


def read() -> tuple[StartupFile, ...]:
    """Return each start-up file on sys.path or in a site directory, in that order."""
    sites = _site_directories()
    folders = {os.path.realpath(folder): folder for folder in [*sites, *sys.path] if folder}
    known = {os.path.realpath(folder) for folder in sites}
    return tuple(
        _read(Path(folder, name), real in known)
        for real, folder in folders.items()
        for name in SHIPPED
        if os.path.lexists(os.path.join(folder, name))
    )


def _site_directories() -> list[str]:
    folders = list(site.getsitepackages())
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return folders


def _read(path: Path, in_site: bool) -> StartupFile:
    try:
        content: str | None = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        content = None
    expected = content is not None and content.strip() == SHIPPED[path.name]
    why = "it cannot be read" if content is None else _obstacle(path, in_site)
    return StartupFile(
        path=str(path),
        content=None if content is None else content.strip(),
        expected=expected,
        ran=not why,
        why=why,
    )


def _obstacle(path: Path, in_site: bool) -> str:
    """Return the rule by which Python does not run the file; "" where it does."""
    if sys.flags.no_site:
        return "Python was started with -S"
    if not in_site:
        return "its folder is on sys.path, but it is no site directory (--target, PYTHONPATH)"
    new = sys.version_info >= (3, 15)
    if path.suffix == ".start" and not new:
        return "it is for Python 3.15 and later"
    if path.suffix == ".pth" and new and path.with_suffix(".start").exists():
        return "the .start file beside it replaces it on Python 3.15 and later"
    # macOS sets the flag on what lies below a hidden folder such as .venv, and site skips it.
    if getattr(path.lstat(), "st_flags", 0) & stat.UF_HIDDEN:
        return "the file is hidden, and Python skips hidden ones"
    return ""
