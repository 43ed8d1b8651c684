"""Sweeps in real processes: consumers of every form, imported before the finder was there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from faults import build_real
from support import REPO, START, STUB_TORCH, run_python

FUNCTION = "fast_hadamard_transform.hadamard_transform"
INTERFACE = "fast_hadamard_transform.fast_hadamard_transform_interface"

# One consumer for each way of importing the package that is found in public code.
CONSUMERS = {
    "sparse_attention": """
        try:
            from fast_hadamard_transform import hadamard_transform
        except ImportError:
            hadamard_transform = None
    """,
    "sparse_attention_layers": """
        from sparse_attention import hadamard_transform
    """,
    "primitive": """
        try:
            from fast_hadamard_transform import hadamard_transform as _fht
        except (ImportError, OSError):
            _fht = None
    """,
    "quack_like": """
        try:
            from fast_hadamard_transform import hadamard_transform as fast_hadamard_transform
        except ImportError:
            fast_hadamard_transform = None
    """,
    "spin": """
        try:
            from fast_hadamard_transform import hadamard_transform as _fast_hadamard_transform

            def multiply(x):
                return "fast"
        except ImportError:
            print("NOTE: slow")

            def multiply(x):
                return "slow"
    """,
    "frames": """
        import os
        if os.sep:
            try:
                from fast_hadamard_transform.fast_hadamard_transform_interface import (
                    hadamard_transform_12N as _f12,
                )
            except ImportError:
                _f12 = None
    """,
    "quantize": """
        try:
            import fast_hadamard_transform
        except:
            fast_hadamard_transform = None
    """,
    "indexer": """
        HAS_FAST_HADAMARD = False
        try:
            from fast_hadamard_transform import hadamard_transform as rotate
            HAS_FAST_HADAMARD = True
        except ImportError:
            pass
    """,
    "cache_manager": """
        try:
            import fast_hadamard_transform as fht
            HAS_FHT = True
        except ImportError:
            HAS_FHT = False
    """,
    "cache_user": """
        from cache_manager import HAS_FHT as READY
    """,
    "sentinel": """
        hadamard_transform = None

        def rotate(x):
            global hadamard_transform
            if hadamard_transform is None:
                from fast_hadamard_transform import hadamard_transform
            return hadamard_transform(x)
    """,
    "lazy": """
        def rotate(x):
            from fast_hadamard_transform import hadamard_transform
            return hadamard_transform(x)
    """,
    "fallback": """
        try:
            from fast_hadamard_transform import hadamard_transform
        except ImportError:
            def hadamard_transform(x, scale=1.0):
                return "own"
    """,
    "utils": """
        from functools import lru_cache
        from importlib.util import find_spec

        @lru_cache
        def is_hadamard_available():
            return find_spec("fast_hadamard_transform") is not None

        is_hadamard_available()
    """,
    "gate": """
        from importlib.util import find_spec
        AVAILABLE = find_spec("fast_hadamard_transform") is not None
        if AVAILABLE:
            from fast_hadamard_transform import hadamard_transform as _f
        else:
            _f = None
    """,
    "cuda_direct": """
        try:
            import fast_hadamard_transform_cuda as kernels
        except ImportError:
            kernels = None
    """,
}

REPAIRED = [
    ["sparse_attention", "hadamard_transform", "None", FUNCTION, 3],
    ["sparse_attention_layers", "hadamard_transform", "None", FUNCTION, None],
    ["primitive", "_fht", "None", FUNCTION, 3],
    ["quack_like", "fast_hadamard_transform", "None", FUNCTION, 3],
    ["spin", "_fast_hadamard_transform", "unbound", FUNCTION, 3],
    ["frames", "_f12", "None", f"{INTERFACE}.hadamard_transform_12N", 5],
    ["indexer", "rotate", "unbound", FUNCTION, 4],
]
ON_REQUEST = [
    ["quantize", "fast_hadamard_transform", "None", "module fast_hadamard_transform", 3],
    ["cache_manager", "fht", "unbound", "module fast_hadamard_transform", 3],
    ["cuda_direct", "kernels", "None", "module fast_hadamard_transform_cuda", 3],
    ["cache_manager", "HAS_FHT", "False", "True", 6],
    ["cache_user", "READY", "False", "True", 2],
]
LEFT = {
    "quantize.fast_hadamard_transform": (3, "None since `import fast_hadamard_transform` failed"),
    "cache_manager.fht": (3, "unbound since `import fast_hadamard_transform as fht` failed"),
    "cache_manager.HAS_FHT": (6, "says that `import fast_hadamard_transform as fht` failed"),
    "cache_user.READY": (2, "says that `import fast_hadamard_transform as fht` failed"),
    "cuda_direct.kernels": (3, "None since `import fast_hadamard_transform_cuda as kernels`"),
}
LEFT_FOR_GOOD = {
    "indexer.HAS_FAST_HADAMARD": (5, "no try statement sets HAS_FAST_HADAMARD both to True and"),
    "utils.is_hadamard_available": (6, "may have cached that the package is missing"),
    "gate.AVAILABLE": (3, 'holds the answer of find_spec("fast_hadamard_transform")'),
    "gate._f": (5, f"None may not come from the failed `from {FUNCTION.partition('.')[0]} import"),
}

PRELUDE = """
import dataclasses, importlib, json, os, sys

def load(*names):
    return [importlib.import_module(name) for name in names]

def tell(**facts):
    print(json.dumps(facts, default=dataclasses.asdict))
"""

Child = Callable[..., Any]


@pytest.fixture
def child(tmp_path: Path) -> Child:
    """Runs code in a child in which no start-up file ran, with the consumers on its path."""
    for name, source in CONSUMERS.items():
        (tmp_path / f"{name}.py").write_text(dedent(source), encoding="utf-8")

    def run(code: str, **env: str) -> Any:
        path = [tmp_path, STUB_TORCH, REPO]
        return run_python(PRELUDE + dedent(code), flags=["-S"], path=path, env=env).json()

    return run


def _repairs(sweep: Any) -> list[list[Any]]:
    return [
        [r[key] for key in ("module", "name", "before", "after", "line")] for r in sweep["repairs"]
    ]


def _assert_left(sweep: Any, expected: dict[str, tuple[int, str]]) -> None:
    left = {f"{item['module']}.{item['name']}": item for item in sweep["leftovers"]}
    assert left.keys() == expected.keys()
    for name, (line, reason) in expected.items():
        assert left[name]["line"] == line
        assert left[name]["reason"].startswith(reason)
        assert left[name]["file"].endswith(f"{left[name]['module']}.py")


def test_the_golden_records_of_every_form(child: Child) -> None:
    facts = child(
        f"""
        load(*{list(CONSUMERS)!r})
        import hadamard_finder
        first = hadamard_finder.activate()
        again = hadamard_finder.activate()
        everything = hadamard_finder.sweep(everything=True)
        import fast_hadamard_transform as ours
        m = sys.modules
        function = ours.hadamard_transform
        right = (
            m["sparse_attention"].hadamard_transform is m["primitive"]._fht is function
            and m["quantize"].fast_hadamard_transform is m["cache_manager"].fht is ours
            and m["cuda_direct"].kernels is m["fast_hadamard_transform_cuda"]
            and m["spin"].multiply(1) == "slow"
            and m["sentinel"].hadamard_transform is None
            and m["fallback"].hadamard_transform(1) == "own"
        )
        hadamard_finder.deactivate()
        names = [
            m["sparse_attention"].hadamard_transform, m["primitive"]._fht, m["cache_user"].READY,
            m["quantize"].fast_hadamard_transform, hasattr(m["spin"], "_fast_hadamard_transform"),
        ]
        after = hadamard_finder.sweep()
        second = hadamard_finder.activate()
        tell(first=first, same=first == again, everything=everything, right=right, names=names,
             after=after, second=second == first)
        """
    )
    assert _repairs(facts["first"]) == REPAIRED
    _assert_left(facts["first"], LEFT | LEFT_FOR_GOOD)
    assert facts["same"]
    assert _repairs(facts["everything"]) == REPAIRED + ON_REQUEST
    _assert_left(facts["everything"], LEFT_FOR_GOOD)
    assert facts["right"]
    assert facts["names"] == [None, None, False, None, False]
    assert facts["after"] == {"repairs": [], "leftovers": []}
    assert facts["second"]


def test_the_load_of_the_stand_in_sweeps_by_itself(child: Child) -> None:
    facts = child(
        f"""
        load("sparse_attention", "spin")
        {START.strip()}
        import fast_hadamard_transform as ours
        from hadamard_finder import repair
        tell(filled=sys.modules["spin"]._fast_hadamard_transform is ours.hadamard_transform,
             records=repair.records())
        """
    )
    assert facts["filled"]
    assert len(facts["records"]["repairs"]) == 2


def test_a_working_real_package_fills_with_its_own_function(child: Child, tmp_path: Path) -> None:
    build_real(tmp_path / "late")
    facts = child(
        f"""
        load("sparse_attention", "quantize")
        sys.path.append({str(tmp_path / "late")!r})
        importlib.invalidate_caches()
        import hadamard_finder
        sweep = hadamard_finder.activate()
        import fast_hadamard_transform as real
        tell(sweep=sweep, real=not hasattr(real, "__hadamard_finder__"),
             filled=sys.modules["sparse_attention"].hadamard_transform is real.hadamard_transform)
        """
    )
    assert facts["real"]
    assert facts["filled"]
    assert _repairs(facts["sweep"]) == REPAIRED[:1]
    assert [item["module"] for item in facts["sweep"]["leftovers"]] == ["quantize"]


def test_started_early_a_sweep_finds_and_reads_nothing(child: Child) -> None:
    facts = child(
        f"""
        {START.strip()}
        load(*{list(CONSUMERS)!r})
        import hadamard_finder
        sweep = hadamard_finder.sweep(everything=True)
        tell(sweep=sweep, read="hadamard_finder.repair.forms" in sys.modules)
        """
    )
    assert facts == {"sweep": {"repairs": [], "leftovers": []}, "read": False}


def test_off_and_what_is_imported_under_it(child: Child) -> None:
    facts = child(
        f"""
        {START.strip()}
        os.environ["HADAMARD_FINDER"] = "off"
        load("sparse_attention", "primitive")
        import hadamard_finder
        inert = [hadamard_finder.activate(), hadamard_finder.sweep(everything=True)]
        before = sys.modules["primitive"]._fht
        del os.environ["HADAMARD_FINDER"]
        tell(inert=inert, before=before, sweep=hadamard_finder.activate())
        """
    )
    assert facts["inert"] == [{"repairs": [], "leftovers": []}] * 2
    assert facts["before"] is None
    assert _repairs(facts["sweep"]) == [REPAIRED[0], REPAIRED[2]]


def test_none_set_on_purpose_while_active_stays(child: Child) -> None:
    facts = child(
        f"""
        {START.strip()}
        consumer, = load("sparse_attention")
        bound = consumer.hadamard_transform is not None
        consumer.hadamard_transform = None
        import hadamard_finder
        first = hadamard_finder.activate()
        hadamard_finder.deactivate()
        second = hadamard_finder.activate()
        tell(bound=bound, first=first, second=second, now=consumer.hadamard_transform)
        """
    )
    nothing: dict[str, list[Any]] = {"repairs": [], "leftovers": []}
    assert facts == {"bound": True, "first": nothing, "second": nothing, "now": None}


def test_a_sweep_that_fails_does_not_break_the_import(child: Child) -> None:
    facts = child(
        f"""
        {START.strip()}
        from hadamard_finder import repair
        def fail(**options):
            raise ValueError("sweep")
        repair.run = fail
        import fast_hadamard_transform as ours
        tell(works=callable(ours.hadamard_transform))
        """
    )
    assert facts == {"works": True}


def test_a_script_read_from_a_pipe_keeps_its_input(tmp_path: Path) -> None:
    # As `python <(...)` does; a sweep that opened the script would wait for ever.
    code = """
        import json, os, sys
        reader, writer = os.pipe()
        main = sys.modules["__main__"]
        main.__file__ = f"/dev/fd/{reader}"
        hadamard_transform = None
        os.write(writer, b"untouched")
        import hadamard_finder
        sweep = hadamard_finder.activate()
        print(json.dumps([len(sweep.repairs), os.read(reader, 99).decode()]))
    """
    path = [STUB_TORCH, REPO]
    assert run_python(code, flags=["-S"], path=path, cwd=tmp_path).json() == [1, "untouched"]


def test_the_records_are_json(child: Child) -> None:
    facts = child('load("spin"); import hadamard_finder; tell(s=hadamard_finder.activate())')
    assert json.loads(json.dumps(facts)) == facts
    (record,) = facts["s"]["repairs"]
    assert record.keys() == {"module", "name", "before", "after", "file", "line"}
