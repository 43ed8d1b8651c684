"""What a module's source says of its import of the package."""

from __future__ import annotations

import sys
import warnings
from textwrap import dedent

import pytest

from hadamard_finder.repair.forms import Flag, Form, Reading, read


def reading(source: str) -> Reading:
    return read(dedent(source).encode())


def form(source: str) -> Form:
    (only,) = reading(source).forms
    return only


@pytest.mark.parametrize(
    ("statement", "kind", "module", "attribute", "bound"),
    [
        (
            "import fast_hadamard_transform",
            "import",
            "fast_hadamard_transform",
            "",
            "fast_hadamard_transform",
        ),
        ("import fast_hadamard_transform as fht", "import", "fast_hadamard_transform", "", "fht"),
        (
            "import fast_hadamard_transform_cuda as c",
            "import",
            "fast_hadamard_transform_cuda",
            "",
            "c",
        ),
        (
            "import fast_hadamard_transform.fast_hadamard_transform_interface",
            "import",
            "fast_hadamard_transform",
            "",
            "fast_hadamard_transform",
        ),
        (
            "import fast_hadamard_transform.fast_hadamard_transform_interface as i",
            "import",
            "fast_hadamard_transform.fast_hadamard_transform_interface",
            "",
            "i",
        ),
        (
            "from fast_hadamard_transform import hadamard_transform",
            "from",
            "fast_hadamard_transform",
            "hadamard_transform",
            "hadamard_transform",
        ),
        (
            "from fast_hadamard_transform import hadamard_transform as _h",
            "from",
            "fast_hadamard_transform",
            "hadamard_transform",
            "_h",
        ),
        (
            "from fast_hadamard_transform import *",
            "from",
            "fast_hadamard_transform",
            "hadamard_transform",
            "hadamard_transform",
        ),
    ],
)
def test_what_a_statement_asks_for(
    statement: str, kind: str, module: str, attribute: str, bound: str
) -> None:
    found = form(statement)
    assert (found.kind, found.module, found.attribute, found.bound) == (
        kind,
        module,
        attribute,
        bound,
    )
    assert found.statement == statement
    assert (found.line, found.end, found.at_module_level) == (1, 1, True)
    assert (found.outcome, found.proven, found.flags) == ("raises", False, ())


@pytest.mark.parametrize(
    "statement",
    [
        "import fast_hadamard_transformer",
        "from . import fast_hadamard_transform",
        "from .fast_hadamard_transform import hadamard_transform",
        "x = 'fast_hadamard_transform'",
        "print('fast_hadamard_transform')",
        "# import fast_hadamard_transform",
        "import scipy  # not fast_hadamard_transform",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import fast_hadamard_transform",
        "import typing\nif typing.TYPE_CHECKING:\n    import fast_hadamard_transform",
        "f = object()\nf('fast_hadamard_transform')\nf(1)(available='fast_hadamard_transform')",
    ],
)
def test_what_is_no_import_of_the_package(statement: str) -> None:
    assert reading(statement).forms == ()


TRY = "try:\n    from fast_hadamard_transform import hadamard_transform as h\n"


@pytest.mark.parametrize(
    ("handler", "outcome", "proven"),
    [
        ("except ImportError: h = None", "None", True),
        ("except ImportError: h: object = None", "None", True),
        ("except ImportError: h = g = None", "None", True),
        ("except ImportError: g, h = 1, None", "None", True),
        ("except ImportError: [g, h] = 1, 2", "other", False),
        ("except ImportError: g, h = two()", "other", False),
        ("except ModuleNotFoundError: h = None", "None", True),
        ("except (OSError, ImportError): h = None", "None", True),
        ("except OSError: raise\nexcept ImportError: h = None", "None", True),
        ("except Exception: h = None", "None", True),
        ("except builtins.Exception: h = None", "None", True),
        ("except: h = None", "None", True),
        ("except OUR_ERRORS: h = None", "None", True),
        ("except ImportError: h = False", "False", True),
        ("except ImportError: pass", "unbound", True),
        ("except ImportError:\n    del g\n    log('no kernel')", "unbound", True),
        ("except ImportError: h = slow", "other", False),
        ("except ImportError:\n    def h(x): return x", "other", False),
        ("except ImportError:\n    class h: pass", "other", False),
        ("except ImportError:\n    for h in (): pass", "other", False),
        ("except ImportError:\n    with lock as h: pass", "other", False),
        ("except ImportError: from slow import fht as h", "other", False),
        ("except ImportError: raise", "raises", False),
        ("except OSError: h = None", "raises", False),
        ("finally: h = None", "raises", False),
        ("except ImportError:\n    if strict: raise\n    h = None", "None", True),
        (
            "except ImportError:\n    try: from slow import h\n    except ImportError: h = None",
            "None",
            True,
        ),
        ("except ImportError: pass\nelse: del g", "unbound", True),
    ],
)
def test_what_the_except_branch_leaves(handler: str, outcome: str, proven: bool) -> None:
    found = form(TRY + handler)
    assert (found.outcome, found.proven) == (outcome, proven)
    assert found.line == 2


@pytest.mark.parametrize(
    ("source", "outcome", "proven"),
    [
        # The name has a value before: that one stays.
        (f"h = None\n{TRY}except ImportError: pass", "None", True),
        (f"h = False\n{TRY}except ImportError: pass", "False", True),
        (f"def h(x): return x\n{TRY}except ImportError: pass", "other", False),
        (f"h = 1\ndel h\n{TRY}except ImportError: pass", "unbound", False),
        # None on purpose, after the import or instead of it.
        (f"{TRY}except ImportError: h = None\nif off: h = None", "None", False),
        (f"{TRY}except ImportError: pass\ndel h", "unbound", False),
    ],
)
def test_what_else_binds_the_name(source: str, outcome: str, proven: bool) -> None:
    found = form(source)
    assert (found.outcome, found.proven) == (outcome, proven)


@pytest.mark.parametrize(
    ("source", "outcome", "proven"),
    [
        ("if rocm:\n{}", "None", True),
        ("if cuda:\n    pass\nelse:\n{}", "None", True),
        ("with quiet():\n{}", "None", True),
        ("for _ in range(1):\n{}", "None", True),
        ("try:\n    import speedy\nexcept ImportError:\n{}", "None", True),
        ("match kind:\n    case 1:\n    {}", "None", True),
        ("h = None\nif rocm:\n{}", "None", False),
        ("if cuda: h = None\nelse:\n{}", "None", False),
    ],
)
def test_an_import_within_other_statements(source: str, outcome: str, proven: bool) -> None:
    block = f"{TRY}except ImportError: h = None"
    depth = "        " if "match" in source else "    "
    inner = "\n".join(depth + line for line in block.splitlines())
    found = form(source.replace("    {}", "{}").format(inner))
    assert (found.outcome, found.proven) == (outcome, proven)


def test_unbound_within_a_condition_proves_nothing() -> None:
    found = form(
        """
        if rocm:
            try:
                from fast_hadamard_transform import hadamard_transform as h
            except ImportError:
                pass
        """
    )
    assert (found.outcome, found.proven, found.end) == ("unbound", False, 6)


def test_the_outer_try_decides_where_the_inner_one_raises() -> None:
    found = form(
        """
        try:
            try:
                from fast_hadamard_transform import hadamard_transform as h
            except ImportError as error:
                raise RuntimeError from error
        except Exception:
            h = None
        """
    )
    assert (found.outcome, found.proven, found.end) == ("None", True, 8)


@pytest.mark.parametrize("manager", ["suppress(ImportError)", "contextlib.suppress(Exception)"])
def test_suppress_leaves_the_name_unbound(manager: str) -> None:
    found = form(f"with {manager}:\n    import fast_hadamard_transform")
    assert (found.outcome, found.proven) == ("unbound", True)


@pytest.mark.parametrize(
    "manager", ["suppress(OSError)", "lock", "suppress()", "quiet(ImportError)"]
)
def test_other_managers_suppress_nothing(manager: str) -> None:
    assert form(f"with {manager}:\n    import fast_hadamard_transform").outcome == "raises"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="except* came with Python 3.11")
def test_except_star() -> None:
    assert form(f"{TRY}except* ImportError: h = None").outcome == "None"


@pytest.mark.parametrize(
    ("source", "flags"),
    [
        (f"{TRY}    HAS = True\nexcept ImportError: HAS = False", [Flag("HAS", 4, True)]),
        (
            f"{TRY}except ImportError: HAS = False\nelse: HAS = True",
            [Flag("HAS", 3, True)],
        ),
        (f"HAS = False\n{TRY}    HAS = True\nexcept ImportError: pass", [Flag("HAS", 4, False)]),
        (f"HAS = True\n{TRY}except ImportError: HAS = False", [Flag("HAS", 4, False)]),
        (
            f"{TRY}    HAS = True\nexcept ImportError: HAS = False\nif off: HAS = False",
            [Flag("HAS", 4, False)],
        ),
        (f"{TRY}except ImportError: verbose = False", []),
        (f"{TRY}    HAS = True\nexcept ImportError: pass", []),
        (f"{TRY}except ImportError: h = False", []),
        (
            "if rocm:\n try:\n  import fast_hadamard_transform\n  HAS = True\n"  # noqa: ISC004
            " except ImportError:\n  HAS = False\nelse:\n HAS = False",
            [Flag("HAS", 6, False)],
        ),
    ],
)
def test_flags(source: str, flags: list[Flag]) -> None:
    assert list(form(source).flags) == flags


def test_companions_are_what_else_has_to_be_there() -> None:
    found = form(
        """
        try:
            import speedy.kernels
            from fast_hadamard_transform import hadamard_transform as h
            half = partial(h, scale=0.5)
            cache = None
            HAS = True
        except ImportError:
            h, HAS = None, False
        else:
            def rotate(x): return h(x)
        """
    )
    assert found.companions == ("half", "rotate", "speedy")


@pytest.mark.parametrize(
    ("statement", "kind", "text", "bound"),
    [
        ("importlib.import_module({})", "import_module", "import_module({})", ""),
        ("fht = importlib.import_module({})", "import_module", "import_module({})", "fht"),
        ("fht = __import__({})", "import_module", "__import__({})", "fht"),
        ("f = import_module({}).hadamard_transform", "import_module", "import_module({})", ""),
        ("HAS = find_spec({}) is not None", "probe", "find_spec({})", "HAS"),
        ("HAS: bool = bool(util.find_spec(name={}))", "probe", "find_spec({})", "HAS"),
        ("a, b = find_spec({}), 1", "probe", "find_spec({})", ""),
        ("pytest.importorskip({})", "probe", "importorskip({})", ""),
        ("if _is_package_available({}): pass", "probe", "_is_package_available({})", ""),
        ("with checked(version({})): pass", "probe", "version({})", ""),
    ],
)
def test_calls(statement: str, kind: str, text: str, bound: str) -> None:
    name = '"fast_hadamard_transform"'
    found = form(statement.format(name))
    assert (found.kind, found.statement, found.bound) == (kind, text.format(name), bound)
    assert found.outcome == ("False" if kind == "probe" else "raises")
    assert not found.proven


@pytest.mark.parametrize(
    ("orelse", "outcome"),
    [
        ("h = None", "None"),
        ("pass", "unbound"),
        ("from slow import h", "other"),
        ("raise E", "raises"),
    ],
)
@pytest.mark.parametrize("named", [False, True])
def test_an_import_behind_a_probe(orelse: str, outcome: str, named: bool) -> None:
    probe = 'find_spec("fast_hadamard_transform") is not None'
    start = f"HAS = {probe}\nif HAS:" if named else f"if {probe}:"
    body = "    from fast_hadamard_transform import hadamard_transform as h"
    found = reading(f"{start}\n{body}\nelse:\n    {orelse}").forms[-1]
    # Only a try statement proves that the import was tried.
    assert (found.kind, found.outcome, found.proven) == ("from", outcome, False)


def test_an_import_behind_any_other_condition_is_not_guarded() -> None:
    source = "if cuda:\n    import fast_hadamard_transform as h\nelse:\n    h = None"
    assert form(source).outcome == "raises"


def test_imports_in_functions_and_classes_are_told_from_those_of_the_module() -> None:
    found = reading(
        """
        def rotate(x):
            from fast_hadamard_transform import hadamard_transform
            def inner():
                try:
                    import fast_hadamard_transform_cuda as c
                except ImportError:
                    c = None
            return hadamard_transform(x)

        class Layer:
            if True:
                import fast_hadamard_transform as fht

        async def other():
            pass
        """
    ).forms
    assert [(f.line, f.bound, f.outcome, f.at_module_level) for f in found] == [
        (3, "hadamard_transform", "raises", False),
        (6, "c", "None", False),
        (13, "fht", "raises", False),
    ]


def test_functions_that_name_the_package() -> None:
    probes = reading(
        """
        @lru_cache
        def available():
            return importlib.util.find_spec("fast_hadamard_transform") is not None

        def is_available():
            return _is_package_available("fast_hadamard_transform") and _is_package_available("x")

        async def fetch():
            from fast_hadamard_transform import hadamard_transform
            import fast_hadamard_transform
            return log(hadamard_transform)

        def comments():
            "Needs no fast_hadamard_transform."  # fast_hadamard_transform

        def other():
            import fast_hadamard_transform

        def nothing():
            return 1
        """
    ).probes
    assert [(p.name, p.line, p.calls) for p in probes] == [
        ("available", 3, ()),
        ("is_available", 6, ("_is_package_available",)),
        ("fetch", 9, ()),
        ("other", 17, ()),
    ]


def test_names_taken_from_other_modules() -> None:
    taken = reading(
        """
        from a.b import f as g
        from ..c import h
        from . import *
        try:
            from d import HAS
        except ImportError:
            HAS = False
        from e import k
        k = None
        def inner():
            from z import z
        """
    ).taken
    assert [(t.line, t.level, t.module, t.name, t.bound, t.rebound) for t in taken] == [
        (2, 0, "a.b", "f", "g", False),
        (3, 2, "c", "h", "h", False),
        (4, 1, "", "*", "*", False),
        (6, 0, "d", "HAS", "HAS", False),
        (9, 0, "e", "k", "k", True),
    ]


def test_a_source_with_doubtful_escapes_neither_warns_nor_fails() -> None:
    source = (
        'x = "\\d \\\\d \\"q\\" \\\n"; y = r"\\w"; z = b"\\."; f = f"\\N{EM DASH}{x}\\400"\n'
        "import fast_hadamard_transform\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [f.line for f in read(source.encode()).forms] == [3]


def test_an_encoding_is_honoured() -> None:
    source = "# -*- coding: latin-1 -*-\nx = 'é'\nimport fast_hadamard_transform\n"
    assert len(read(source.encode("latin-1")).forms) == 1


@pytest.mark.parametrize("source", [b"import fast_hadamard_transform as", b"x = '\xff'", b"\0"])
def test_what_is_no_python_is_refused(source: bytes) -> None:
    with pytest.raises((SyntaxError, ValueError)):
        read(source)
