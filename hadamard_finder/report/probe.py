"""Asks a child process what the import of the package gives; survives whatever happens there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import IO, Any, final

from hadamard_finder.finder import SWITCH

# The flags that change what a process finds; a child is started with ours.
_FLAGS = {
    "isolated": "-I",
    "no_site": "-S",
    "ignore_environment": "-E",
    "no_user_site": "-s",
    "safe_path": "-P",
}


@final
class Probe:
    """A child that is on its way; ``answer`` waits for it."""

    def __init__(
        self,
        *,
        switch: str | None = None,
        path: Sequence[str] | None = None,
        check: bool = False,
        only_if_found: bool = False,
    ) -> None:
        """Start the child: ``switch`` is its HADAMARD_FINDER, ``path`` its sys.path; None: ours."""
        call = f"child.main(check={check}, only_if_found={only_if_found})"
        code = f"from hadamard_finder.report import child; {call}"
        if path is not None:
            code = f"import sys; sys.path[:] = {list(path)!r}; {code}"
        environment = dict(os.environ)
        if switch is not None:
            environment[SWITCH] = switch
        flags = [flag for name, flag in _FLAGS.items() if getattr(sys.flags, name, False)]
        # Files, not pipes: a grandchild that outlives the child would keep a pipe open.
        self._out: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # __exit__ closes both
        self._err: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._started = time.monotonic()
        self._obstacle = ""
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = subprocess.Popen(
                [sys.executable, *flags, "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=self._out,
                stderr=self._err,
                env=environment,
            )
        except OSError as error:  # embedded Pythons have no executable, some sandboxes no fork
            self._obstacle = f"no child process can be started: {error}"

    def __enter__(self) -> Probe:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._out.close()
        self._err.close()

    def answer(self, timeout: float) -> dict[str, Any]:
        """Return what the child told; ``timeout`` is in seconds from its start.

        Where no child could be started, ``error`` says why and ``loads`` is not there.

        ``signal`` names what ended it, ``timed_out`` is True where it did not end in time, and
        ``stage`` is what it was doing then.
        """
        facts: dict[str, Any] = {"signal": None, "timed_out": False}
        if self._process is None:
            return {**facts, "error_type": "OSError", "error": self._obstacle}
        left = self._started + timeout - time.monotonic()
        try:
            self._process.wait(max(left, 0))
        except subprocess.TimeoutExpired:
            facts["timed_out"] = True
        for line in _lines(self._out):
            try:
                facts.update(json.loads(line))
            except ValueError:  # cut where the child died
                continue
        if not facts.get("done") and not facts["timed_out"]:
            facts["signal"] = _ending(self._process.returncode)
            facts["error"] = next(reversed(_lines(self._err)), None)
        return facts


def _lines(file: IO[bytes]) -> list[str]:
    file.seek(0)
    return file.read().decode("utf-8", "replace").splitlines()


def _ending(code: int) -> str:
    if code < 0:
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"
    # Windows ends a crashed process with its exception's code, 0xc0000005 for one.
    return f"exit status {code:#x}" if code > 255 else f"exit status {code}"
