from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from faults import Fault
from support import REPO, START, STUB_TORCH, TESTS, Result, run_python

LISTEN = "import probe; log = probe.listen()\n"


@dataclass(frozen=True)
class Site:
    """A folder on the path of child processes: where a test lays what shall be installed."""

    folder: Path

    def run(
        self,
        code: str,
        *,
        start: bool = True,
        torch: Path | None = STUB_TORCH,
        path: tuple[Path, ...] = (),
        behind: tuple[Path, ...] = (),
        **options: Any,
    ) -> Result:
        """Run ``code`` with the finder started as a start-up file does it, and ``log`` listening.

        -S, so that nothing which is installed beside these tests takes part.
        """
        options.setdefault("flags", ("-S",))
        options.setdefault("cwd", self.folder)  # `-c` puts the working directory first on the path
        whole = (START if start else "") + LISTEN + textwrap.dedent(code)
        stub = [] if torch is None else [torch]
        return run_python(whole, path=[*path, self.folder, *stub, TESTS, REPO, *behind], **options)

    def write(self, name: str, source: str) -> Path:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(source), encoding="utf-8")
        return file


@pytest.fixture
def site(tmp_path: Path) -> Site:
    folder = tmp_path / "site"
    folder.mkdir()
    return Site(folder)


@pytest.fixture
def lay(site: Site) -> Callable[[Fault], None]:
    """Lay a fault into the site, or skip the test where this machine cannot build it."""

    def build(fault: Fault) -> None:
        if fault.obstacle():
            pytest.skip(f"{fault.name}: {fault.obstacle()}")
        fault.build(site.folder)

    return build
