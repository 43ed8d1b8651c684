"""Child processes, other interpreters and wheels: what tests of import machinery need.

Standard library only, and valid on every Python we support: children of other interpreters import
this file, too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TESTS = Path(__file__).resolve().parent
REPO = TESTS.parent
STUB_TORCH = TESTS / "stub_torch"

# What a start-up file does, for children that were started without one.
START = "import hadamard_finder.finder; hadamard_finder.finder.start()\n"

_DROPPED = ("HADAMARD_FINDER", "PYTHON")
_DROPPED_NAMES = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "VIRTUAL_ENV"}


@dataclass(frozen=True)
class Result:
    """What a child process came to."""

    code: int
    out: str
    err: str

    def check(self) -> Result:
        """Fail, and show what the child said, unless it exited with 0."""
        assert self.code == 0, f"exit {self.code}\n--- out\n{self.out}\n--- err\n{self.err}"
        return self

    def json(self) -> Any:
        """Return the last line the child printed, read as JSON."""
        self.check()
        return json.loads(self.out.strip().splitlines()[-1])


def clean_environment(
    env: Mapping[str, str] | None = None, path: Sequence[str | Path] = ()
) -> dict[str, str]:
    """Return this process's environment without what steers us, Python or a distributed job."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_DROPPED) and name not in _DROPPED_NAMES
    }
    if path:
        kept["PYTHONPATH"] = os.pathsep.join(str(item) for item in path)
    return {**kept, **(env or {})}


def run_python(
    code: str,
    *,
    flags: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    path: Sequence[str | Path] = (),
    cwd: str | Path | None = None,
    python: str | Path = sys.executable,
    timeout: float = 120,
) -> Result:
    """Run ``code`` in a real child process with a clean environment."""
    return run(
        [python, *flags, "-c", textwrap.dedent(code)],
        env=env,
        path=path,
        cwd=cwd,
        timeout=timeout,
    )


def run(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    path: Sequence[str | Path] = (),
    cwd: str | Path | None = None,
    timeout: float = 120,
) -> Result:
    """Run any command with a clean environment."""
    done = subprocess.run(
        [str(word) for word in command],
        env=clean_environment(env, path),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def other_pythons() -> list[Path]:
    """Return the interpreters of this machine that we support, but this one's version.

    They are looked for on PATH and beside the folder this one lives in, where version managers
    keep theirs. Each is asked for its version: a name on PATH may be a shim that runs nothing.
    """
    names = [f"python3.{minor}" for minor in range(10, 16)]
    found = [which for name in names if (which := shutil.which(name))]
    beside = Path(sys.base_prefix).parent
    found += [str(item) for item in sorted(beside.glob("*/bin/python3")) if item.exists()]
    ask = "import sys; print(sys.implementation.name, *sys.version_info[:2], sys.executable)"
    seen: dict[tuple[int, int], Path] = {}
    for candidate in found:
        try:
            answer = run([candidate, "-I", "-S", "-c", ask], timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            continue
        words = answer.out.split(maxsplit=3)
        if answer.code == 0 and len(words) == 4 and words[0] == "cpython":
            version = (int(words[1]), int(words[2]))
            if version >= (3, 10) and version != sys.version_info[:2]:
                seen.setdefault(version, Path(words[3].strip()))
    return [seen[version] for version in sorted(seen)]
