"""Which installed distributions import the package, read from their files; imports none of them."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from hadamard_finder.finder import EXTENSION, PACKAGE
from hadamard_finder.repair.forms import MENTION, Form, read
from hadamard_finder.report import metadata
from hadamard_finder.report.facts import Consumer

_MISSING = {
    "None": "{bound} is None",
    "False": "{bound} is False",
    "unbound": "{bound} stays unbound",
    "other": "{bound} is something of its own",
}


def survey(progress: Callable[[int, int], None]) -> tuple[Consumer, ...]:
    """Return each import of the package in each installed distribution, by name, file and line.

    ``progress`` is called with how many distributions were read, and of how many.
    """
    found: list[Consumer] = []
    distributions = list(metadata.distributions())
    for done, dist in enumerate(distributions):
        progress(done, len(distributions))
        if dist.metadata["Name"] != "hadamard-finder":
            for file in _python_files(dist):
                found += _consumers(dist, file)
    progress(len(distributions), len(distributions))
    return tuple(sorted(found, key=lambda item: (item.distribution.lower(), item.file, item.line)))


def _python_files(dist: Any) -> Iterator[str]:
    record = dist.read_text("RECORD")
    if record is None:
        # Eggs and system packages list their files elsewhere, if at all.
        yield from (
            str(dist.locate_file(path)) for path in dist.files or () if path.suffix == ".py"
        )
        return
    root = str(dist.locate_file(""))
    for row in csv.reader(record.splitlines()):
        # The real package imports itself.
        if row and row[0].endswith(".py") and not row[0].startswith(PACKAGE):
            yield os.path.join(root, row[0])
    yield from _editable_files(dist)


def _editable_files(dist: Any) -> Iterator[str]:
    """What is installed with ``pip install -e`` lists none of its files; its folder does."""
    try:
        origin = json.loads(dist.read_text("direct_url.json") or "{}")
    except ValueError:
        return
    if not origin.get("dir_info", {}).get("editable"):
        return
    folder = url2pathname(unquote(urlsplit(origin.get("url", "")).path))
    for place, folders, files in os.walk(folder):
        kept = [name for name in folders if not _is_foreign_tree(Path(place, name))]
        folders[:] = [name for name in kept if name != PACKAGE]
        yield from (os.path.join(place, name) for name in files if name.endswith(".py"))


def _is_foreign_tree(folder: Path) -> bool:
    """Whether this is a hidden folder or a virtual environment, which is somebody else's code."""
    return folder.name.startswith(".") or (folder / "pyvenv.cfg").exists()


def _consumers(dist: Any, file: str) -> Iterator[Consumer]:
    try:
        with open(file, "rb") as stream:
            source = stream.read()
        if MENTION not in source:
            return
        forms = read(source).forms
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return  # not there any more, or no Python: templates bear the suffix, too
    for form in forms:
        yield Consumer(
            distribution=dist.metadata["Name"] or "?",
            version=dist.version,
            file=file,
            line=form.line,
            statement=form.statement,
            when_missing=_when_missing(form),
        )


def _when_missing(form: Form) -> str:
    flags = ", ".join(flag.name for flag in form.flags)
    if form.kind == "probe":
        words = "asks whether it is there"
    elif form.outcome == "raises":
        words = "cannot be imported" if form.at_module_level else "raises when it is called"
    else:
        words = _MISSING[form.outcome].format(bound=form.bound or form.module or EXTENSION)
    return f"{words}, {flags} is False" if flags else words
