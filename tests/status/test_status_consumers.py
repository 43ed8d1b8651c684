"""``status --consumers`` finds who imports the package without importing anybody."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import STUB_TORCH, run

from hadamard_finder.report import survey

FORMS = {
    "plain.py": "from fast_hadamard_transform import hadamard_transform\n",
    "none.py": (
        "try:\n    from fast_hadamard_transform import hadamard_transform\n"
        "except ImportError:\n    hadamard_transform = None\n"
    ),
    "unbound.py": (
        "try:\n    from fast_hadamard_transform import hadamard_transform as _fht\n"
        "except ImportError:\n    pass\n"
    ),
    "flag.py": (
        "try:\n    import fast_hadamard_transform\n    HAS_FHT = True\n"
        "except ImportError:\n    HAS_FHT = False\n"
    ),
    "own.py": (
        "try:\n    from fast_hadamard_transform import hadamard_transform\n"
        "except ImportError:\n    def hadamard_transform(x):\n        return x\n"
    ),
    "sub/lazy.py": (
        "def rotate(x):\n    from fast_hadamard_transform import hadamard_transform\n"
        "    return hadamard_transform(x)\n"
    ),
    "sub/probe.py": (
        "from importlib.util import find_spec\n"
        "HAS = find_spec('fast_hadamard_transform') is not None\n"
    ),
    "sub/extension.py": "import fast_hadamard_transform_cuda\n",
    # Not consumers
    "mentions.py": "# fast_hadamard_transform would be faster\n",
    "template.py": "import fast_hadamard_transform\n{% if x %}\n",
    "zeros.py": "import fast_hadamard_transform\n\0\0",
}
TAKEN = "from fast_hadamard_transform import hadamard_transform"
GOLDEN = [
    (
        "flag.py",
        2,
        "import fast_hadamard_transform",
        "fast_hadamard_transform stays unbound, HAS_FHT is False",
    ),
    ("none.py", 2, TAKEN, "hadamard_transform is None"),
    ("own.py", 2, TAKEN, "hadamard_transform is something of its own"),
    ("plain.py", 1, TAKEN, "cannot be imported"),
    ("sub/extension.py", 1, "import fast_hadamard_transform_cuda", "cannot be imported"),
    ("sub/lazy.py", 2, TAKEN, "raises when it is called"),
    ("sub/probe.py", 2, 'find_spec("fast_hadamard_transform")', "asks whether it is there"),
    ("unbound.py", 2, f"{TAKEN} as _fht", "_fht stays unbound"),
]


def lay(folder: Path, package: str = "consumer") -> list[str]:
    """Write the forms; each would raise if anybody imported it."""
    for name, source in FORMS.items():
        file = folder / package / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{source}raise SystemExit('imported')\n")
    return [f"{package}/{name}" for name in FORMS]


def install(site: Path, name: str, files: list[str], **extra: str) -> Path:
    info = site / f"{name}-1.5.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    for file, text in extra.items():
        (info / file.replace("__", ".")).write_text(text)
    return info


def shown(found: list[dict[str, Any]], root: Path) -> list[tuple[str, int, str, str]]:
    return [
        (
            Path(item["file"]).relative_to(root).as_posix(),
            item["line"],
            item["statement"],
            item["when_missing"],
        )
        for item in found
    ]


def ours(answer: Any, name: str) -> list[dict[str, Any]]:
    return [item for item in answer.status["consumers"] if item["distribution"] == name]


def test_every_form(ask: Callable[..., Any], tmp_path: Path) -> None:
    install(tmp_path, "consumer", [*lay(tmp_path), "consumer/gone.py", "consumer/data.txt"])
    answer = ask("--consumers", path=[tmp_path])
    assert answer.code == 0
    found = ours(answer, "consumer")
    assert shown(found, tmp_path / "consumer") == GOLDEN
    assert {item["version"] for item in found} == {"1.5"}


def test_an_editable_install(ask: Callable[..., Any], tmp_path: Path) -> None:
    checkout = tmp_path / "a check out"
    lay(checkout)
    for hidden in (".tox", "env"):
        lay(checkout / hidden)
    (checkout / "env" / "pyvenv.cfg").write_text("")
    origin = {"url": checkout.as_uri(), "dir_info": {"editable": True}}
    site = tmp_path / "site"
    install(site, "editable", ["editable.pth"], direct_url__json=json.dumps(origin))
    answer = ask("--consumers", path=[site])
    assert shown(ours(answer, "editable"), checkout / "consumer") == GOLDEN


@pytest.mark.parametrize("origin", ["", "no json", '{"url": "file:///x"}'])
def test_any_other_origin_has_no_more_files(
    origin: str, ask: Callable[..., Any], tmp_path: Path
) -> None:
    install(tmp_path, "plain", [], direct_url__json=origin)
    assert ours(ask("--consumers", path=[tmp_path]), "plain") == []


def test_an_egg_lists_its_files_elsewhere(ask: Callable[..., Any], tmp_path: Path) -> None:
    info = tmp_path / "old.egg-info"
    info.mkdir()
    (info / "PKG-INFO").write_text("Metadata-Version: 1.0\nName: old\nVersion: 0.1\n")
    files = [f"../{name}" for name in lay(tmp_path)]
    (info / "installed-files.txt").write_text("\n".join(files))
    answer = ask("--consumers", path=[tmp_path])
    assert [Path(item["file"]).name for item in ours(answer, "old")] == [
        Path(name).name for name, *_ in GOLDEN
    ]


def test_the_package_itself_is_no_consumer(ask: Callable[..., Any], tmp_path: Path) -> None:
    files = ["fast_hadamard_transform/__init__.py"]
    (tmp_path / "fast_hadamard_transform").mkdir()
    (tmp_path / files[0]).write_text("import fast_hadamard_transform_cuda\n")
    install(tmp_path, "real", files)
    answer = ask("--consumers", path=[tmp_path])
    assert ours(answer, "real") == ours(answer, "hadamard-finder") == []


def test_progress_is_told_to_the_end() -> None:
    steps: list[tuple[int, int]] = []
    survey.survey(lambda done, total: steps.append((done, total)))
    total = steps[-1][1]
    assert steps == [(done, total) for done in range(total + 1)]
    assert total > 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pty")
def test_progress_goes_to_a_terminal_only() -> None:
    command = [sys.executable, "-m", "hadamard_finder", "status", "--consumers"]
    assert run(command, path=[STUB_TORCH]).check().err == ""
    code = f"import os, pty; os._exit(os.waitstatus_to_exitcode(pty.spawn({command!r})))"
    shown = run([sys.executable, "-c", code], path=[STUB_TORCH], env={"TERM": "xterm"}).check().out
    assert "reading distribution 1 of" in shown
