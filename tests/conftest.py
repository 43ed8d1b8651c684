"""Fixtures that every folder of tests may use."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support import REPO, STUB_TORCH, Result, run, run_python


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this repository, built without a network."""
    pytest.importorskip("hatchling", reason="hatchling, which builds the wheel, is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    run(command, cwd=REPO).check()
    (built,) = folder.glob("*.whl")
    return built


@dataclass(frozen=True)
class Venv:
    """A virtual environment of a test."""

    folder: Path
    python: Path
    site_packages: Path

    def install(self, wheel: Path) -> None:
        """Lay a wheel of pure Python into it, as an installer would."""
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(self.site_packages)

    def pip(self, *arguments: str | Path) -> Result:
        """Run its own pip, without an index; it must have been made with ``pip=True``."""
        return run([self.python, "-m", "pip", "--disable-pip-version-check", *arguments])

    def run(self, code: str, **options: Any) -> Result:
        return run_python(code, python=self.python, **options)


@pytest.fixture(scope="session")
def make_venv(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Venv]:
    """A factory of virtual environments; torch in them is "stub", "real" or "none"."""

    def make(
        name: str = "venv",
        *,
        torch: str = "stub",
        pip: bool = False,
        system_site_packages: bool = False,
        python: str | Path = sys.executable,
        options: Sequence[str] = (),
    ) -> Venv:
        folder = tmp_path_factory.mktemp(name)
        flags = [*options, *([] if pip else ["--without-pip"])]
        if system_site_packages:
            flags.append("--system-site-packages")
        # Not through `run`: the environment matters little here, and errors shall be seen.
        subprocess.run([str(python), "-m", "venv", *flags, str(folder)], check=True)
        binary = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
        site_packages = Path(run([binary, "-I", "-c", ask]).check().out.strip())
        home = {"stub": str(STUB_TORCH), "real": sysconfig.get_path("purelib"), "none": ""}[torch]
        if home:
            (site_packages / "zz_torch_of_the_test.pth").write_text(f"{home}\n")
        return Venv(folder, binary, site_packages)

    return make
