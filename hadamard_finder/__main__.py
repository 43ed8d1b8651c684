"""``python -m hadamard_finder status | bench``."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from dataclasses import replace
from typing import TextIO


def main() -> int:
    """Run a subcommand; 0: the import works, 1: it does not, 2: the command line is wrong."""
    parser = argparse.ArgumentParser(prog="python -m hadamard_finder")
    commands = parser.add_subparsers(dest="command", required=True, metavar="status | bench")
    status = commands.add_parser(
        "status", help="what serves `import fast_hadamard_transform` here, and why"
    )
    status.add_argument("--json", action="store_true", help="for machines; the schema is versioned")
    status.add_argument(
        "--check", action="store_true", help="also run the transform on every device"
    )
    status.add_argument(
        "--consumers", action="store_true", help="also list what installed packages import it"
    )
    status.add_argument(
        "--timeout",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="how long a child process may take to load the package (default: 60)",
    )
    bench = commands.add_parser("bench", help="how fast the transform is on this machine")
    # Only the command that runs is imported: bench loads torch, and status must not.
    if sys.argv[1:2] == ["bench"]:
        from hadamard_finder.bench import command

        command.add_arguments(bench)
        return command.main(parser.parse_args())
    return _status(parser.parse_args())


def _status(options: argparse.Namespace) -> int:
    from hadamard_finder.report import assembly, text

    found = assembly.fresh(check=options.check, timeout=options.timeout)
    if options.consumers:
        from hadamard_finder.report import survey

        found = replace(found, consumers=survey.survey(_progress))
    if options.json:
        print(json.dumps(found.as_dict(), indent=2))
    else:
        if isinstance(sys.stdout, io.TextIOWrapper):
            # Not every terminal can show every path.
            sys.stdout.reconfigure(errors="backslashreplace")
        print(text.render(found, colour=_wants_colour(sys.stdout)))
    return 0 if found.works else 1


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        words = f"reading distribution {done} of {total}" if done < total else ""
        # \x1b[K clears what a longer line left.
        sys.stderr.write(f"\r{words}\x1b[K")
        sys.stderr.flush()


def _wants_colour(stream: TextIO) -> bool:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or os.name == "nt"
    return stream.isatty() and not plain


def _seconds(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{word} is not a number of seconds above 0")
    return value


if __name__ == "__main__":
    sys.exit(main())
