"""The start-up files in the site directories: are they ours, and does Python run them?"""

from __future__ import annotations

import os
import site
import stat
import sys
from pathlib import Path

from hadamard_finder.facts import StartupFile

NAMES = ("hadamard_finder.pth", "hadamard_finder.start")
_SHIPPED = Path(__file__).with_name("startup")


def read() -> tuple[StartupFile, ...]:
    """Return each start-up file on sys.path or in a site directory, in that order."""
    sites = _site_directories()
    folders = {os.path.realpath(folder): folder for folder in [*sites, *sys.path] if folder}
    known = {os.path.realpath(folder) for folder in sites}
    # Where our own source lies, the files are data: nobody expects them to run.
    return tuple(
        _read(Path(folder, name), real in known)
        for real, folder in folders.items()
        for name in NAMES
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
    shipped = (_SHIPPED / path.name).read_text(encoding="utf-8")
    expected = content is not None and content.strip() == shipped.strip()
    obstacle = _obstacle(path, in_site)
    if obstacle:
        why = obstacle
    elif content is None:
        why = "cannot be read"
    elif not expected:
        why = "run by Python, but the content is not what this version ships"
    else:
        why = "run by Python at its start"
    return StartupFile(
        path=str(path),
        content=None if content is None else content.strip(),
        expected=expected,
        ran=not obstacle and content is not None,
        why=why,
    )


def _obstacle(path: Path, in_site: bool) -> str:
    """Return the rule by which Python does not run the file; "" where it does."""
    if sys.flags.no_site:
        return "not run: Python was started with -S"
    if not in_site:
        return "not run: the folder is on sys.path, but is no site directory (--target, PYTHONPATH)"
    new = sys.version_info >= (3, 15)
    if path.suffix == ".start" and not new:
        return "not run: for Python 3.15 and later"
    if path.suffix == ".pth" and new and path.with_suffix(".start").exists():
        return "not run: the .start file beside it replaces it on Python 3.15 and later"
    # macOS sets the flag on what lies below a hidden folder such as .venv, and site skips it.
    if getattr(path.lstat(), "st_flags", 0) & stat.UF_HIDDEN:
        return "not run: the file is hidden, and Python skips hidden start-up files"
    return ""
