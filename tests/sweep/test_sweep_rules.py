"""What a sweep fills, what it lists, and what it leaves alone."""

from __future__ import annotations

import importlib
import json
import sys
import threading
import types
import zipfile
from dataclasses import asdict
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from hadamard_finder import finder
from hadamard_finder.repair import rules, sources
from hadamard_finder.repair.record import Repair, Sweep

INTERFACE = "fast_hadamard_transform.fast_hadamard_transform_interface"
FUNCTION = "fast_hadamard_transform.hadamard_transform"
MODULE = "module fast_hadamard_transform"

BY_NAME = """
    try:
        from fast_hadamard_transform import hadamard_transform
    except ImportError:
        hadamard_transform = None
"""
ALIAS = """
    try:
        from fast_hadamard_transform import hadamard_transform as _fht
    except ImportError:
        _fht = None
"""
WHOLE = """
    try:
        import fast_hadamard_transform
    except:
        fast_hadamard_transform = None
"""
FLAG = """
    try:
        from fast_hadamard_transform import hadamard_transform as _fht
        HAS_FAST_HADAMARD = True
    except ImportError:
        _fht = None
        HAS_FAST_HADAMARD = False
"""


# --- automatic


def test_none_by_name(late, short) -> None:
    module = late.consumer("lib.attention", BY_NAME)
    filled, left = short(late.sweep())
    assert filled == [f"lib.attention.hadamard_transform: None -> {FUNCTION} @3"]
    assert left == []
    assert module.hadamard_transform is late.function


def test_records_are_plain_data(late) -> None:
    late.consumer("dsa", BY_NAME)
    late.consumer("quant", WHOLE)
    file = str(late.folder / "dsa.py")
    sweep = late.sweep()
    assert sweep.repairs == (Repair("dsa", "hadamard_transform", "None", FUNCTION, file, 3),)
    (left,) = sweep.leftovers
    assert (left.module, left.name, left.line) == ("quant", "fast_hadamard_transform", 3)
    assert (
        left.reason == "None since `import fast_hadamard_transform` failed, and may serve as a flag"
    )
    assert left.advice.endswith("or call hadamard_finder.sweep(everything=True).")
    assert json.loads(json.dumps(asdict(sweep)))["leftovers"][0]["file"] == left.file


def test_none_by_name_without_any_source(late, short) -> None:
    module = types.ModuleType("made")
    module.hadamard_transform = None  # type: ignore[attr-defined]
    sys.modules["made"] = module
    late.miss("made")
    assert short(late.sweep()) == ([f"made.hadamard_transform: None -> {FUNCTION} @None"], [])


def test_a_copy_under_the_same_name_is_filled_by_name(late, short) -> None:
    late.consumer("origin", BY_NAME)
    copy = late.consumer("taker", "from origin import hadamard_transform\n")
    filled, left = short(late.sweep())
    assert filled[1:] == [f"taker.hadamard_transform: None -> {FUNCTION} @None"]
    assert left == []
    assert copy.hadamard_transform is late.function


@pytest.mark.parametrize(
    ("source", "record"),
    [
        (ALIAS, f"consumer._fht: None -> {FUNCTION} @3"),
        (
            """
            try:
                from fast_hadamard_transform import hadamard_transform as fast_hadamard_transform
            except ImportError:
                fast_hadamard_transform = None
            """,
            f"consumer.fast_hadamard_transform: None -> {FUNCTION} @3",
        ),
        (
            """
            try:
                from fast_hadamard_transform import hadamard_transform as dao_fht
            except ImportError:
                print("slow")
            """,
            f"consumer.dao_fht: unbound -> {FUNCTION} @3",
        ),
        (
            """
            from contextlib import suppress
            with suppress(ImportError):
                from fast_hadamard_transform import *
            """,
            f"consumer.hadamard_transform: unbound -> {FUNCTION} @4",
        ),
        (
            """
            if True:
                try:
                    from fast_hadamard_transform import hadamard_transform as _f
                except Exception:
                    _f = None
            """,
            f"consumer._f: None -> {FUNCTION} @4",
        ),
        (
            """
            try:
                from no_such_kernels import fht as _f
            except ImportError:
                try:
                    from fast_hadamard_transform import hadamard_transform as _f
                except ImportError:
                    _f = None
            """,
            f"consumer._f: None -> {FUNCTION} @6",
        ),
        (
            """
            try:
                from fast_hadamard_transform.fast_hadamard_transform_interface import (
                    hadamard_transform_12N as _f,
                )
            except ImportError:
                _f = None
            """,
            f"consumer._f: None -> {INTERFACE}.hadamard_transform_12N @3",
        ),
        (
            """
            try:
                from fast_hadamard_transform_cuda import fast_hadamard_transform as kernel
            except ImportError:
                kernel = None
            """,
            "consumer.kernel: None -> fast_hadamard_transform_cuda.fast_hadamard_transform @3",
        ),
    ],
)
def test_what_the_source_proves_is_filled(late, short, source: str, record: str) -> None:
    late.consumer("consumer", source)
    assert short(late.sweep()) == ([record], [])


def test_a_name_tried_twice_is_filled_once(late, short) -> None:
    source = """
        try:
            from fast_hadamard_transform import hadamard_transform as _f
        except ImportError:
            try:
                from fast_hadamard_transform_cuda import fast_hadamard_transform as _f
            except ImportError:
                _f = None
    """
    module = late.consumer("twice", source)
    assert short(late.sweep()) == ([f"twice._f: None -> {FUNCTION} @3"], [])
    assert module._f is late.function


# --- never


@pytest.mark.parametrize(
    "source",
    [
        # "Not tried yet."
        """
        hadamard_transform = None

        def rotate(x):
            global hadamard_transform
            if hadamard_transform is None:
                from fast_hadamard_transform import hadamard_transform
            return hadamard_transform(x)
        """,
        """
        fast_hadamard_transform = None

        def rotate(x):
            global fast_hadamard_transform
            import fast_hadamard_transform
        """,
        # Own implementations and placeholders.
        """
        try:
            from fast_hadamard_transform import hadamard_transform
        except ImportError:
            def hadamard_transform(x, scale=1.0):
                return x
        """,
        """
        try:
            from fast_hadamard_transform import hadamard_transform as _f
        except ImportError:
            _f = "placeholder"
        """,
        """
        try:
            from fast_hadamard_transform import hadamard_transform as _f
            HAS = True
        except ImportError:
            HAS = False
            def _f(x): return x
        """,
        # Not for lack of the package.
        """
        cuda = False
        if cuda:
            from fast_hadamard_transform import hadamard_transform as _f
        else:
            _f = None
        """,
        # The package offers no such thing.
        """
        try:
            from fast_hadamard_transform import hadamard_transform_64N as _f
        except ImportError:
            _f = None
        """,
        """
        try:
            from fast_hadamard_transform.fast_hadamard_transform_interface import (
                fast_hadamard_transform_cuda,
            )
        except ImportError:
            fast_hadamard_transform_cuda = None
        """,
        # A function's own business, a class attribute, a default argument.
        """
        def rotate(x):
            try:
                from fast_hadamard_transform import hadamard_transform as _f
            except ImportError:
                _f = None
        _f = None
        """,
    ],
)
@pytest.mark.parametrize("everything", [False, True])
def test_what_is_never_touched_nor_listed(late, source: str, everything: bool) -> None:
    module = late.consumer("consumer", source)
    before = dict(vars(module))
    assert late.sweep(everything) == Sweep()
    assert vars(module) == before


@pytest.mark.parametrize(
    ("source", "name", "reason"),
    [
        (
            ALIAS + "\n    import os\n    if os.sep:\n        _fht = None\n",
            "_fht",
            "None may not come from the failed",
        ),
        (
            """
            if True:
                try:
                    from fast_hadamard_transform import hadamard_transform as _f
                except ImportError:
                    pass
            """,
            "_f",
            "unbound may not come from the failed",
        ),
        (
            """
            try:
                from fast_hadamard_transform import hadamard_transform as _f
                from no_such_kernels import pack
            except ImportError:
                _f = None
            """,
            "_f",
            "also binds pack, missing too",
        ),
        (
            """
            from importlib.util import find_spec
            try:
                HAS = find_spec("fast_hadamard_transform") is not None
            except ValueError:
                HAS = False
            """,
            "HAS",
            'holds the answer of find_spec("fast_hadamard_transform")',
        ),
    ],
)
@pytest.mark.parametrize("everything", [False, True])
def test_what_is_listed_only(late, source: str, name: str, reason: str, everything: bool) -> None:
    module = late.consumer("consumer", source)
    before = dict(vars(module))
    sweep = late.sweep(everything)
    assert sweep.repairs == ()
    (left,) = sweep.leftovers
    assert left.name == name
    assert reason in left.reason
    assert left.advice == rules._START
    assert vars(module) == before


# --- on request


@pytest.mark.parametrize(
    ("source", "record"),
    [
        (WHOLE, f"consumer.fast_hadamard_transform: None -> {MODULE} @3"),
        (
            """
            try:
                import fast_hadamard_transform as fht
            except ImportError:
                pass
            """,
            f"consumer.fht: unbound -> {MODULE} @3",
        ),
        (
            """
            import importlib
            try:
                fht = importlib.import_module("fast_hadamard_transform")
            except ImportError:
                fht = None
            """,
            f"consumer.fht: None -> {MODULE} @4",
        ),
        (
            """
            try:
                import fast_hadamard_transform_cuda
            except ImportError:
                fast_hadamard_transform_cuda = None
            """,
            "consumer.fast_hadamard_transform_cuda: None -> module fast_hadamard_transform_cuda @3",
        ),
        (
            """
            try:
                from fast_hadamard_transform import hadamard_transform
            except ImportError:
                hadamard_transform = False
            """,
            f"consumer.hadamard_transform: False -> {FUNCTION} @3",
        ),
    ],
)
def test_modules_and_false_wait_for_a_request(late, short, source: str, record: str) -> None:
    module = late.consumer("consumer", source)
    name = record.partition(":")[0].rpartition(".")[2]
    before = dict(vars(module))
    sweep = late.sweep()
    assert [(item.name, item.advice) for item in sweep.leftovers] == [(name, rules._ON_REQUEST)]
    assert vars(module) == before
    assert short(late.sweep(everything=True)) == ([record], [])
    assert callable(getattr(module, name)) or module.__dict__[name] in late.there.values()


def test_a_function_beside_a_module_is_filled_with_it_or_not_at_all(late, short) -> None:
    late.consumer(
        "both",
        """
        try:
            import fast_hadamard_transform as fht
            from fast_hadamard_transform import hadamard_transform as _f
        except ImportError:
            fht = _f = None
        """,
    )
    assert short(late.sweep())[0] == []
    filled, left = short(late.sweep(everything=True))
    assert filled == [f"both.fht: None -> {MODULE} @3", f"both._f: None -> {FUNCTION} @4"]
    assert left == []


# --- flags and copies


def test_a_flag_is_set_on_request_with_its_copies(late, short) -> None:
    flag = late.consumer("lib.flag", FLAG)
    late.write("lib.chain", "from .flag import HAS_FAST_HADAMARD as ready\n")
    chain = late.load("lib.chain")
    end = late.consumer("lib.sub.end", "from ..chain import ready\n")
    star = late.consumer("lib.star", "from lib.flag import *\n")
    filled, left = short(late.sweep())
    assert filled == [f"lib.flag._fht: None -> {FUNCTION} @3"]
    assert sorted(left) == [
        "lib.chain.ready @1",
        "lib.flag.HAS_FAST_HADAMARD @7",
        "lib.star.HAS_FAST_HADAMARD @1",
        "lib.sub.end.ready @1",
    ]
    filled, left = short(late.sweep(everything=True))
    assert len(filled) == 5
    assert left == []
    assert flag.HAS_FAST_HADAMARD is star.HAS_FAST_HADAMARD is chain.ready is end.ready is True
    assert short(late.sweep()) == (filled, left)
    rules.undo()
    assert flag.HAS_FAST_HADAMARD is star.HAS_FAST_HADAMARD is chain.ready is end.ready is False


def test_a_flag_that_the_consumer_set_itself(late) -> None:
    module = late.consumer("lib.flag", FLAG)
    module.HAS_FAST_HADAMARD = "yes"
    assert late.sweep(everything=True).leftovers == ()
    assert module.HAS_FAST_HADAMARD == "yes"


def test_a_copy_made_since_is_set_with_its_flag(late) -> None:
    late.consumer("lib.flag", FLAG)
    late.sweep()
    late.write("lib.later", "from lib.flag import HAS_FAST_HADAMARD as ready\n")
    later = importlib.import_module("lib.later")
    late.sweep(everything=True)
    assert later.ready is True


@pytest.mark.parametrize(
    ("name", "source", "reason"),
    [
        (
            "lib.copy",
            "from lib.flag import HAS_FAST_HADAMARD as ready\nready = ready and False\n",
            "lib.copy.ready, a copy, may be False for another reason",
        ),
        (
            "lib.assigned",
            "import lib.flag\nHAS_FAST_HADAMARD = lib.flag.HAS_FAST_HADAMARD\n",
            "lib.assigned.HAS_FAST_HADAMARD may be a copy that cannot be set with it",
        ),
    ],
)
def test_a_flag_stays_where_a_copy_would(late, name: str, source: str, reason: str) -> None:
    flag = late.consumer("lib.flag", FLAG)
    late.consumer(name, source)
    sweep = late.sweep(everything=True)
    left = {item.name: item for item in sweep.leftovers if item.module == "lib.flag"}
    assert left["HAS_FAST_HADAMARD"].reason == reason
    assert left["HAS_FAST_HADAMARD"].advice == rules._START
    assert flag.HAS_FAST_HADAMARD is False


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            """
            HAS = False
            try:
                from fast_hadamard_transform import hadamard_transform as _f
                HAS = True
            except ImportError:
                _f = None
            """,
            "no try statement sets HAS both to True and, where it fails, to False",
        ),
        (
            """
            try:
                import fast_hadamard_transform as fht
                rotate = fht.hadamard_transform
                HAS = True
            except ImportError:
                HAS = False
            """,
            "the try statement that sets HAS also binds fht, missing too",
        ),
    ],
)
def test_a_flag_stays_that_no_try_statement_proves(late, source: str, reason: str) -> None:
    module = late.consumer("consumer", source)
    left = {item.name: item.reason for item in late.sweep(everything=True).leftovers}
    assert left["HAS"] == reason
    assert module.HAS is False


def test_the_flags_of_one_try_statement_go_together(late) -> None:
    module = late.consumer(
        "lib.flags",
        """
        HAS_B = False
        try:
            import fast_hadamard_transform as fht
            HAS_A = HAS_B = True
        except ImportError:
            HAS_A = False
        """,
    )
    left = {item.name: item.reason for item in late.sweep(everything=True).leftovers}
    assert left.keys() == {"HAS_A", "HAS_B"}
    assert module.HAS_A is module.HAS_B is False


def test_flags_whose_module_is_yet_to_come_are_offered_with_it(late) -> None:
    module = late.consumer(
        "flagged",
        """
        try:
            import fast_hadamard_transform as fht
        except ImportError:
            A = B = False
        else:
            A = B = True
        """,
    )
    advice = {item.name: item.advice for item in late.sweep().leftovers}
    assert advice == dict.fromkeys(("fht", "A", "B"), rules._ON_REQUEST)
    assert late.sweep(everything=True).leftovers == ()
    assert (module.A, module.B, module.fht) == (True, True, late.package)


def test_a_flag_without_a_name_for_the_import(late) -> None:
    module = late.consumer(
        "asking",
        """
        import importlib
        try:
            importlib.import_module("fast_hadamard_transform")
            HAS = True
        except ImportError:
            HAS = False
        """,
    )
    late.sweep(everything=True)
    assert module.HAS is True


def test_aliased_copies_are_listed_and_filled_on_request(late, short) -> None:
    late.consumer("origin", ALIAS)
    renamed = late.consumer("renamed", "from origin import _fht as f\n")
    again = late.consumer("again", "from renamed import f as g\n")
    own = late.consumer("own", "from origin import _fht as f\nf = None\n")
    late.consumer("unrelated", "def _fht(): pass\n")
    late.consumer("elsewhere", "from unrelated import _fht\n")
    filled, left = short(late.sweep())
    assert filled == [f"origin._fht: None -> {FUNCTION} @3"]
    assert sorted(left) == ["again.g @1", "own.f @1", "renamed.f @1"]
    filled, left = short(late.sweep(everything=True))
    assert filled[1:] == ["renamed.f: None -> origin._fht @1", "again.g: None -> renamed.f @1"]
    assert left == ["own.f @1"]
    assert renamed.f is again.g is late.function
    assert own.f is None
    assert short(late.sweep()) == (filled, left)


def test_a_copy_of_what_is_left_is_listed_with_it(late, short) -> None:
    late.consumer("quant", WHOLE)
    late.consumer("layer", "from quant import fast_hadamard_transform\n")
    filled, left = short(late.sweep())
    assert (filled, left) == (
        [],
        ["quant.fast_hadamard_transform @3", "layer.fast_hadamard_transform @1"],
    )
    _, left = short(late.sweep(everything=True))
    assert left == []
    assert sys.modules["layer"].fast_hadamard_transform is late.package


# --- cached probes


CACHED = """
    from functools import cache, lru_cache
    from importlib.util import find_spec

    @cache
    def _is_package_available(name):
        try:
            return find_spec(name) is not None
        except ValueError:
            return False

    @lru_cache
    def is_hadamard_available():
        return _is_package_available("fast_hadamard_transform")

    @lru_cache
    def never_asked():
        return _is_package_available("fast_hadamard_transform_cuda")

    def plain():
        return find_spec("fast_hadamard_transform")
"""


def test_cached_probes_are_listed_with_the_calls_that_clear_them(late) -> None:
    module = late.consumer("utils", CACHED)
    assert module.is_hadamard_available() is False
    left = {item.name: item for item in late.sweep(everything=True).leftovers}
    clear = "utils._is_package_available.cache_clear()"
    assert left.keys() == {"is_hadamard_available", "never_asked"}
    assert left["is_hadamard_available"].advice == (
        f"Call utils.is_hadamard_available.cache_clear() and {clear}."
    )
    assert left["never_asked"].advice == f"Call {clear}."
    assert left["never_asked"].line == 17
    module.is_hadamard_available.cache_clear()
    module._is_package_available.cache_clear()
    assert late.sweep().leftovers == ()


def test_other_caches_and_odd_decorators(late) -> None:
    module = late.consumer(
        "utils",
        """
        def ours():
            import fast_hadamard_transform
        def odd():
            import fast_hadamard_transform
        """,
    )
    module.ours.cache_clear = lambda: None  # as cachetools does
    module.odd.cache_clear = module.odd.cache_info = lambda: None
    assert [item.name for item in late.sweep().leftovers] == ["ours"]


# --- when


def test_nothing_happens_without_the_package(late) -> None:
    module = late.consumer("dsa", BY_NAME)
    late.block()
    assert rules.sweep() == Sweep()
    del sys.modules["fast_hadamard_transform"]
    assert rules.sweep() == Sweep()
    sys.modules["fast_hadamard_transform"] = types.ModuleType("fast_hadamard_transform")
    assert rules.sweep() == Sweep()
    assert module.hadamard_transform is None


def test_nothing_happens_while_a_real_package_is_loading(late) -> None:
    module = late.consumer("dsa", BY_NAME)
    late.package.__spec__ = ModuleSpec("fast_hadamard_transform", None)
    late.package.__spec__._initializing = True
    assert late.sweep() == Sweep()
    late.package.__hadamard_finder__ = True  # the stand-in sweeps when it is ready, not before
    assert len(late.sweep().repairs) == 1
    assert module.hadamard_transform is late.function


def test_nothing_happens_under_off(late, monkeypatch) -> None:
    module = late.consumer("dsa", BY_NAME)
    monkeypatch.setenv("HADAMARD_FINDER", "off")
    assert late.sweep(everything=True) == Sweep()
    assert module.hadamard_transform is None


def test_modules_imported_under_the_finder_keep_their_none(late) -> None:
    module = late.consumer("dsa", BY_NAME)
    finder.STATE.missed.clear()
    assert late.sweep(everything=True) == Sweep()
    late.miss("dsa")
    finder.STATE.missed["dsa"] += 1  # another module of that name
    assert late.sweep(everything=True) == Sweep()
    assert module.hadamard_transform is None


def test_modules_that_are_being_imported_are_left_to_themselves(late) -> None:
    by_name = late.consumer("dsa", BY_NAME)
    by_source = late.consumer("alias", ALIAS)
    taker = late.consumer("taker", "from alias import _fht as f\n")
    modules = (by_name, by_source, taker)
    for module in modules:
        module.__spec__._initializing = True
    assert late.sweep() == Sweep()
    for module in modules[:2]:
        module.__spec__._initializing = False
    assert len(late.sweep(everything=True).repairs) == 2
    assert vars(taker)["f"] is None


def test_a_second_sweep_changes_nothing(late) -> None:
    late.consumer("dsa", BY_NAME)
    late.consumer("alias", ALIAS)
    late.consumer("quant", WHOLE)
    first = late.sweep()
    assert (len(first.repairs), len(first.leftovers)) == (2, 1)
    assert late.sweep() == first == rules.records()


def test_undo_restores_what_is_still_ours(late) -> None:
    named = late.consumer("dsa", BY_NAME)
    unbound = late.consumer("unbound", ALIAS.replace("_fht = None", "pass"))
    whole = late.consumer("quant", WHOLE)
    changed = late.consumer("changed", BY_NAME)
    reloaded = late.consumer("reloaded", BY_NAME)
    gone = late.consumer("gone", BY_NAME)
    late.sweep(everything=True)
    changed.hadamard_transform = 7
    importlib.reload(reloaded)
    del sys.modules["gone"], gone
    rules.undo()
    assert named.hadamard_transform is whole.fast_hadamard_transform is None
    assert not hasattr(unbound, "_fht")
    assert changed.hadamard_transform == 7
    assert reloaded.hadamard_transform is late.function  # its own import, this time
    assert rules.records() == Sweep()
    rules.undo()
    assert len(late.sweep().repairs) == 2


def test_none_set_on_purpose_after_a_repair_stays(late) -> None:
    module = late.consumer("dsa", BY_NAME)
    alias = late.consumer("alias", ALIAS)
    late.sweep()
    module.hadamard_transform = alias._fht = None
    left = late.sweep(everything=True).leftovers
    assert {item.reason for item in left} == {"has been set back since a sweep filled it"}
    assert module.hadamard_transform is alias._fht is None
    # A reload that misses the package again is another matter.
    late.block()
    importlib.reload(module)
    late.sweep()
    assert module.hadamard_transform is late.function


def test_a_patch_around_a_sweep(late) -> None:
    module = late.consumer("dsa", BY_NAME)
    with mock.patch.object(module, "hadamard_transform", "patched"):
        assert late.sweep() == Sweep()
        assert module.hadamard_transform == "patched"
    assert module.hadamard_transform is None
    assert len(late.sweep().repairs) == 1
    with mock.patch.object(module, "hadamard_transform", None):
        late.sweep()
        assert module.hadamard_transform is None
    assert module.hadamard_transform is late.function


def test_a_script_is_repaired_up_to_the_line_it_has_come_to(late, short) -> None:
    path = late.write(
        "script",
        """
        from hadamard_finder.repair import rules
        try:
            from fast_hadamard_transform import hadamard_transform as before
        except ImportError:
            pass
        arrive()
        sweep = rules.sweep()
        block()
        try:
            from fast_hadamard_transform import hadamard_transform as after
        except ImportError:
            pass
        """,
    )
    script = types.ModuleType("__main__")
    script.__dict__.update(__file__=str(path), arrive=late.arrive, block=late.block)
    sys.modules["__main__"] = script
    late.miss("__main__")
    late.block()
    exec(compile(path.read_text(), str(path), "exec"), script.__dict__)
    assert short(script.sweep) == ([f"__main__.before: unbound -> {FUNCTION} @4"], [])
    assert len(late.sweep().repairs) == 2  # from another body, with the script at its end


# --- odd modules


def test_lazy_modules_are_not_woken(late, short) -> None:
    woken = []

    class Lazy(types.ModuleType):
        def __getattribute__(self, name: str) -> object:
            woken.append(name)
            return super().__getattribute__(name)

        def __getattr__(self, name: str) -> object:
            woken.append(name)
            raise RuntimeError(name)

        @property
        def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
            raise RuntimeError("loads everything")

    source = ALIAS.replace("_fht = None", "pass")
    late.write("lazy", source)
    lazy = Lazy("lazy", None)
    finder.namespace(lazy)["__file__"] = str(late.folder / "lazy.py")
    named = Lazy("named")
    finder.namespace(named)["hadamard_transform"] = None
    sys.modules.update(lazy=lazy, named=named)
    for name in ("lazy", "named"):
        late.miss(name)
    woken.clear()
    filled, left = short(late.sweep(everything=True))
    assert (filled, left) == ([f"named.hadamard_transform: None -> {FUNCTION} @None"], [])
    assert woken == []


def test_a_module_that_offers_names_by_getattr_keeps_them(late) -> None:
    source = (
        ALIAS.replace("_fht = None", "pass") + "\n    def __getattr__(name): raise RuntimeError\n"
    )
    module = late.consumer("offering", source)
    assert late.sweep(everything=True) == Sweep()
    assert "_fht" not in vars(module)


def test_what_is_no_module_is_passed_over(late) -> None:
    class Proxy:
        __class__ = types.ModuleType  # type: ignore[assignment]
        hadamard_transform = None

        def __getattr__(self, name: str) -> object:
            raise RuntimeError(name)

    others: dict[Any, Any] = {"proxy": Proxy(), "number": 5, "none": None, 7: Proxy()}
    finder.STATE.missed.update((name, id(other)) for name, other in others.items())
    sys.modules.update(others)
    module = late.consumer("dsa", BY_NAME)
    try:
        assert len(late.sweep(everything=True).repairs) == 1
    finally:
        del sys.modules[7]  # type: ignore[arg-type]
    assert module.hadamard_transform is late.function


def test_one_odd_module_does_not_keep_the_others(late) -> None:
    bad = late.consumer("bad", ALIAS)
    late.consumer("good", ALIAS)
    late.consumer("taker", "from good import _fht as f\n")

    class Spec(ModuleSpec):
        def __getattr__(self, name: str) -> object:
            raise RuntimeError(name)

    bad.__spec__ = Spec("bad", None)
    late.consumer("copies", "from good import _fht as f\n").__spec__ = bad.__spec__
    sweep = late.sweep()
    assert [item.module for item in sweep.repairs] == ["good"]
    assert [item.module for item in sweep.leftovers] == ["taker"]


def test_a_module_under_two_names_is_listed_once(late) -> None:
    sys.modules["nickname"] = late.consumer("quant", WHOLE)
    late.miss("nickname")
    assert [item.module for item in late.sweep().leftovers] == ["quant"]


def test_relative_copies_without_a_package_attribute(late) -> None:
    late.consumer("lib.origin", ALIAS)
    package = late.consumer("lib.pack.__init__", "")
    taker = late.consumer("lib.taker", "from .origin import _fht as f\n")
    late.write("lib.pack.__init__", "from ..origin import _fht as f\n")
    package = late.load("lib.pack")
    importlib.reload(package)
    for module in (package, taker):
        del module.__package__
    assert sorted(item.module for item in late.sweep().leftovers) == ["lib.pack", "lib.taker"]


# --- sources


def test_without_a_source_only_names_that_tell_are_listed(late, short) -> None:
    archive = late.folder / "app.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("zipped.py", "HAS_FAST_HADAMARD = False\nx = None\n")
        file.writestr("quiet.py", "x = None\n")
    sys.path.insert(0, str(archive))
    try:
        zipped, quiet = late.load("zipped"), late.load("quiet")
    finally:
        sys.path.remove(str(archive))
    assert quiet.x is zipped.x is None
    sweep = late.sweep(everything=True)
    assert short(sweep) == ([], ["zipped.HAS_FAST_HADAMARD @None"])
    assert "source cannot be read" in sweep.leftovers[0].reason


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.unlink(),
        lambda path: path.write_text("try: import fast_hadamard_transform as\n"),
        lambda path: path.write_bytes(b"\0 fast_hadamard_transform"),
    ],
)
def test_a_file_that_has_changed_since(late, change) -> None:
    module = late.consumer("quant", WHOLE)
    change(late.folder / "quant.py")
    (left,) = late.sweep(everything=True).leftovers
    assert "source cannot be read" in left.reason
    assert left.line is None
    assert module.fast_hadamard_transform is None


def test_a_script_of_any_suffix_is_read_but_no_pipe(late, tmp_path: Path) -> None:
    script = late.write("train", ALIAS).rename(tmp_path / "train")
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=str(script), _fht=None)
    sys.modules["__main__"] = main
    late.miss("__main__")
    assert len(late.sweep().repairs) == 1
    main.__file__, main._fht = str(tmp_path), None  # type: ignore[attr-defined]
    rules._BOOK = rules._Book()
    assert late.sweep() == Sweep()


def _watch(monkeypatch) -> list[str]:
    """Return the stems of the files that are read from now on."""
    opened = []
    real = sources.FileIO

    def watch(path: str) -> Any:
        opened.append(Path(path).stem)
        return real(path)

    monkeypatch.setattr(sources, "FileIO", watch)
    return opened


def test_the_big_packages_are_never_read(late, monkeypatch) -> None:
    opened = _watch(monkeypatch)
    for name in ("json.decoder", "torch.fake", "numpy.fake", "scipy.fake", "hadamard_finder.fake"):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__file__ = str(late.folder / "missing.py")
        late.miss(name)
    late.consumer("alias", ALIAS)
    late.sweep(everything=True)
    late.sweep()
    assert "missing" not in opened
    assert opened.count("alias") == 1


def test_a_source_is_read_once_unless_a_copy_is_looked_for(late, monkeypatch) -> None:
    late.consumer("dsa", BY_NAME)
    late.consumer("near", "x = 'hadamard_transform'\n")
    late.consumer("far", "x = 1\n")
    late.sweep()
    opened = _watch(monkeypatch)
    late.sweep()
    assert opened == ["near"]


# --- threads


def test_two_sweeps_at_once_and_imports_meanwhile(late) -> None:
    modules = [late.consumer(f"c{number}", BY_NAME + ALIAS) for number in range(20)]
    late.arrive()
    start = threading.Barrier(4)
    errors: list[BaseException] = []

    def run(step: Any) -> None:
        start.wait()
        try:
            for number in range(20):
                step(number)
        except BaseException as error:
            errors.append(error)

    def churn(number: int) -> None:
        name = f"churn{number}"
        sys.modules[name] = types.ModuleType(name)
        finder.STATE.missed[name] = id(sys.modules[name])
        del sys.modules[name]

    steps = [lambda _: rules.sweep(), lambda _: rules.sweep(everything=True), churn]
    threads = [threading.Thread(target=run, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    start.wait()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(rules.records().repairs) == 40
    assert all(m.hadamard_transform is m._fht is late.function for m in modules)


def test_a_reload_of_the_sweep_keeps_its_records(late) -> None:
    book = rules._BOOK
    late.consumer("dsa", BY_NAME)
    late.sweep()
    importlib.reload(rules)
    assert rules._BOOK is book
    assert len(rules.records().repairs) == 1
