"""Reads from a module's source how it imports the package and what it does where that fails.

Nothing is imported or executed. Only statements on lines that name the package are looked at, and
the bindings of the scope around them.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, cast

from hadamard_finder.finder import EXTENSION, PACKAGE

Kind = Literal["from", "import", "import_module", "probe"]
Outcome = Literal["None", "False", "unbound", "other", "raises"]

# PACKAGE is a prefix of EXTENSION: one search finds both.
MENTION = PACKAGE.encode()
_NAME = re.compile(rf"(?:{PACKAGE}(?:\.\w+)*|{EXTENSION})\Z")
_IMPORTERS = ("import_module", "__import__")
_PROBES = re.compile(r"import|spec|available|version|installed", re.IGNORECASE)
# The parser warns of "\d" on the user's terminal, and under -W error refuses the file. Switching
# warnings off for the time being is not thread-safe, and what a string says is of no interest: no
# escape is left but those that end a line, quote a quote or, in an f-string, hide a brace.
_ESCAPE = re.compile(rb"\\\\|\\(?=[^\r\n'\"N])")

_Trail = tuple[tuple[ast.AST, str], ...]
_TRIES: tuple[type[ast.AST], ...] = (ast.Try, getattr(ast, "TryStar", ast.Try))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)


@dataclass(frozen=True)
class Flag:
    """A name that says whether the import worked: True where it did, False where it failed.

    proven: one and the same try statement assigns both, and nothing else can have put False there.
    """

    name: str
    line: int
    proven: bool


@dataclass(frozen=True)
class Form:
    """One statement that imports the package, a module of it or its extension, or probes for it.

    statement is its text, normalised. module is the dotted name asked for, attribute what is taken
    from it ("" for the module itself), bound the name that holds it ("" for none). outcome is what
    bound holds where the import fails; "raises" also stands for an import that nothing guards.
    proven: only the failed import can have left that outcome. companions are the other names that
    the same try statement binds on success. end is the last line of that try statement.
    """

    kind: Kind
    line: int
    end: int
    statement: str
    module: str
    attribute: str
    bound: str
    outcome: Outcome
    proven: bool
    flags: tuple[Flag, ...]
    companions: tuple[str, ...]
    at_module_level: bool


@dataclass(frozen=True)
class Probe:
    """A module-level function that names the package; calls are those it passes that name to."""

    name: str
    line: int
    calls: tuple[str, ...]


@dataclass(frozen=True)
class Taken:
    """A name taken from another module at module level: ``from <level dots><module> import name``.

    rebound: something else than the except branch of that import binds the same name, too.
    """

    line: int
    level: int
    module: str
    name: str
    bound: str
    rebound: bool


@dataclass(frozen=True)
class Reading:
    forms: tuple[Form, ...]
    probes: tuple[Probe, ...]
    taken: tuple[Taken, ...]


def read(source: bytes) -> Reading:
    """Return every form of import in a module's source, in the order of the lines.

    Raises SyntaxError or ValueError for what is no Python source of this Python's grammar, and
    RecursionError or MemoryError for what is nested too deep for its parser.
    """
    tree = ast.parse(_ESCAPE.sub(lambda match: b"/" * len(match[0]), source))
    lines = {number for number, line in enumerate(source.splitlines(), 1) if MENTION in line}
    forms = sorted(_forms(tree.body, lines, True), key=lambda form: form.line)
    probes = [probe for statement in tree.body for probe in _probes(statement, lines)]
    return Reading(tuple(forms), tuple(probes), tuple(_taken(tree.body)))


@dataclass(frozen=True)
class _Binding:
    name: str
    value: str  # "None", "False", "True", "del", "probe", else "other"
    line: int


@dataclass(frozen=True)
class _Guard:
    """The statement that outlives a missing package: try, ``with suppress``, or if with a probe.

    conditional: it need not have run. failing and success are what it binds in either case.
    """

    node: ast.stmt
    conditional: bool
    failing: tuple[_Binding, ...]
    success: tuple[_Binding, ...]

    @property
    def end(self) -> int:
        return self.node.end_lineno or self.node.lineno


def _forms(body: list[ast.stmt], lines: set[int], at_module_level: bool) -> Iterator[Form]:
    scope: list[_Binding] | None = None
    for statement, trail in _statements(body, ()):
        if not _touches(statement, lines):
            continue
        if isinstance(statement, _SCOPES):
            yield from _forms(statement.body, lines, False)
        for kind, text, module, attribute, bound in _requests(statement):
            if scope is None:
                scope = list(_bindings(body))
            yield _form(
                statement, trail, scope, at_module_level, kind, text, module, attribute, bound
            )


def _form(
    statement: ast.stmt,
    trail: _Trail,
    scope: list[_Binding],
    at_module_level: bool,
    kind: Kind,
    text: str,
    module: str,
    attribute: str,
    bound: str,
) -> Form:
    guard, outcome = _guard(trail, bound, _probed(scope))
    if guard is None:
        # The answer of a probe is no failure: `HAS = find_spec(...) is not None`.
        outcome = "False" if kind == "probe" else "raises"
        end = statement.end_lineno or statement.lineno
        flags: list[Flag] = []
        companions: list[str] = []
        proven = False
    else:
        end = guard.end
        before = [b.value for b in scope if b.name == bound and b.line < guard.node.lineno]
        if outcome == "unbound" and before:
            outcome = _as_outcome(before[-1])
        proven = bound != "" and kind != "probe" and _settled(scope, guard, bound, outcome)
        flags = list(_flags(scope, guard, bound))
        taken = {flag.name for flag in flags} | {bound}
        needed = {b.name for b in guard.success if b.value not in ("None", "False", "del")}
        companions = sorted(needed - taken)
    return Form(
        kind,
        statement.lineno,
        end,
        text,
        module,
        attribute,
        bound,
        outcome,
        proven,
        tuple(flags),
        tuple(companions),
        at_module_level,
    )


def _statements(body: Iterable[ast.stmt], trail: _Trail) -> Iterator[tuple[ast.stmt, _Trail]]:
    """Yield the statements of one scope with the compound statements around each."""
    for statement in body:
        yield statement, trail
        if isinstance(statement, _SCOPES):
            continue
        for part in ("body", "handlers", "cases", "orelse", "finalbody"):
            if part == "body" and _never_runs(statement):
                continue
            for child in getattr(statement, part, ()):
                inner = (*trail, (statement, part))
                block = [child] if isinstance(child, ast.stmt) else child.body
                yield from _statements(block, inner)


def _never_runs(statement: ast.stmt) -> bool:
    test = getattr(statement, "test", None)
    return isinstance(statement, ast.If) and "TYPE_CHECKING" in (
        getattr(test, "id", None),
        getattr(test, "attr", None),
    )


def _touches(node: ast.stmt, lines: set[int]) -> bool:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    return not lines.isdisjoint(range(first, (node.end_lineno or node.lineno) + 1))


def _requests(statement: ast.stmt) -> Iterator[tuple[Kind, str, str, str, str]]:
    """Yield kind, text, module, attribute and bound name of every import in one statement."""
    if isinstance(statement, ast.Import):
        for item in statement.names:
            if _NAME.match(item.name):
                bound = item.asname or item.name.partition(".")[0]
                # `import a.b` binds a, `import a.b as c` binds a.b.
                module = item.name if item.asname else bound
                yield "import", f"import {_as(item)}", module, "", bound
    elif isinstance(statement, ast.ImportFrom):
        module = statement.module or ""
        if statement.level == 0 and _NAME.match(module):
            for item in statement.names:
                attribute = "hadamard_transform" if item.name == "*" else item.name
                text = f"from {module} import {_as(item)}"
                yield "from", text, module, attribute, item.asname or attribute
    else:
        bound = _target(statement)
        for node in _own_expressions(statement):
            callee, module = _call(node)
            if callee in _IMPORTERS:
                whole = getattr(statement, "value", None) is node
                text = f'{callee}("{module}")'
                yield "import_module", text, module, "", bound if whole else ""
            elif callee:
                yield "probe", f'{callee}("{module}")', module, "", bound


def _as(item: ast.alias) -> str:
    return f"{item.name} as {item.asname}" if item.asname else item.name


def _target(statement: ast.stmt) -> str:
    targets = [b.name for b in _bindings([statement])]
    simple = isinstance(statement, (ast.Assign, ast.AnnAssign))
    return targets[0] if simple and len(targets) == 1 else ""


def _own_expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, (ast.expr, ast.withitem)):
            yield from ast.walk(child)


def _call(node: ast.AST) -> tuple[str, str]:
    """Return callee and module name of a call such as ``find_spec("fast_hadamard_transform")``."""
    if not isinstance(node, ast.Call):
        return "", ""
    callee = _last_name(node.func)
    for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
        value = getattr(argument, "value", None)
        if isinstance(value, str) and _NAME.match(value) and _PROBES.search(callee):
            return callee, value
    return "", ""


def _probed(scope: list[_Binding]) -> set[str]:
    return {binding.name for binding in scope if binding.value == "probe"}


def _guard(trail: _Trail, bound: str, probed: set[str]) -> tuple[_Guard | None, Outcome]:
    for place, (node, part) in reversed(list(enumerate(trail))):
        around = [parent for parent, _ in (*trail[:place], *trail[place + 1 :])]
        conditional = any(not isinstance(parent, (ast.With, ast.AsyncWith)) for parent in around)
        if part != "body":
            continue
        if isinstance(node, ast.With) and any(_suppresses(item) for item in node.items):
            return _Guard(node, conditional, (), tuple(_bindings(node.body))), "unbound"
        if isinstance(node, ast.If) and _asks(node.test, probed):
            failing, success = tuple(_bindings(node.orelse)), tuple(_bindings(node.body))
            return _Guard(node, conditional, failing, success), _outcome(node.orelse, bound)
        if isinstance(node, _TRIES):
            attempt = cast(ast.Try, node)  # TryStar has the same fields
            handlers = [handler.body for handler in attempt.handlers if _catches(handler.type)]
            outcomes = [_outcome(body, bound) for body in handlers]
            survived = [outcome for outcome in outcomes if outcome != "raises"]
            if survived:
                failing = tuple(binding for body in handlers for binding in _bindings(body))
                success = tuple(_bindings([*attempt.body, *attempt.orelse]))
                return _Guard(attempt, conditional, failing, success), survived[0]
    return None, "raises"


def _asks(test: ast.expr, probed: set[str]) -> bool:
    nodes = list(ast.walk(test))
    return any(_call(node)[0] or getattr(node, "id", None) in probed for node in nodes)


def _last_name(node: ast.expr) -> str:
    return str(getattr(node, "attr", "") or getattr(node, "id", ""))


def _suppresses(item: ast.withitem) -> bool:
    call = item.context_expr
    if not isinstance(call, ast.Call):
        return False
    callee = _last_name(call.func)
    return callee == "suppress" and any(_catches(argument) for argument in call.args)


def _catches(kind: ast.expr | None) -> bool:
    """Whether ``except kind`` catches what a missing package raises."""
    if kind is None:
        return True
    if isinstance(kind, ast.Tuple):
        return any(_catches(element) for element in kind.elts)
    error = getattr(builtins, _last_name(kind), None)
    # A name of the module's own is taken to stand for import errors: why else guard an import?
    return not isinstance(error, type) or issubclass(ModuleNotFoundError, error)


def _outcome(body: list[ast.stmt], bound: str) -> Outcome:
    values = {b.value for b in _bindings(body) if b.name == bound}
    # Where a second attempt in there binds the name, too, its value in the module decides.
    for value in ("None", "False"):
        if value in values:
            return _as_outcome(value)
    if values:
        return "other"
    return "raises" if any(isinstance(statement, ast.Raise) for statement in body) else "unbound"


def _as_outcome(value: str) -> Outcome:
    known: dict[str, Outcome] = {"None": "None", "False": "False", "del": "unbound"}
    return known.get(value, "other")


def _settled(scope: list[_Binding], guard: _Guard, name: str, outcome: Outcome) -> bool:
    """Whether nothing but the guard's failure can have left ``outcome`` in ``name``."""
    # Only a try statement proves that the import was tried and failed.
    if outcome in ("other", "raises") or isinstance(guard.node, ast.If):
        return False
    others = [b for b in scope if b.name == name and b not in guard.failing]
    if outcome == "unbound":
        return not guard.conditional and not any(b.value == "del" for b in others)
    return not any(b.value == outcome and (guard.conditional or b.line > guard.end) for b in others)


def _flags(scope: list[_Binding], guard: _Guard, bound: str) -> Iterator[Flag]:
    failing = {b.name: b.line for b in guard.failing if b.value == "False"}
    success = {b.name: b.line for b in guard.success if b.value == "True"}
    start = guard.node.lineno
    before = {b.name: b.value for b in scope if b.line < start}
    for name in sorted((failing.keys() | success.keys()) - {bound}):
        both = name in failing and name in success
        if both or before.get(name) == ("True" if name in failing else "False"):
            line = failing.get(name) or success[name]
            yield Flag(name, line, both and _settled(scope, guard, name, "False"))


def _bindings(body: Iterable[ast.stmt]) -> Iterator[_Binding]:
    for statement, _ in _statements(body, ()):
        for name, value in _bound_by(statement):
            yield _Binding(name, value, statement.lineno)


def _bound_by(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    if isinstance(statement, _SCOPES):
        yield statement.name, "other"
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        for item in statement.names:
            if item.name != "*":
                yield item.asname or item.name.partition(".")[0], "other"
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _assigned(target, statement.value)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield from _assigned(statement.target, statement.value)
    elif isinstance(statement, ast.Delete):
        for target in statement.targets:
            if isinstance(target, ast.Name):
                yield target.id, "del"
    else:
        for node in _own_expressions(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id, "other"


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str]]:
    if isinstance(target, ast.Name):
        constant = value.value if isinstance(value, ast.Constant) else ...
        known = constant is None or isinstance(constant, bool)
        asked = any(_call(node)[0] not in ("", *_IMPORTERS) for node in ast.walk(value))
        yield target.id, str(constant) if known else "probe" if asked else "other"
    elif isinstance(target, (ast.Tuple, ast.List)):
        values = getattr(value, "elts", ())
        paired = len(values) == len(target.elts)
        for place, element in enumerate(target.elts):
            yield from _assigned(element, values[place] if paired else target)


def _probes(statement: ast.stmt, lines: set[int]) -> Iterator[Probe]:
    if isinstance(statement, _FUNCTIONS) and _touches(statement, lines):
        nodes = list(ast.walk(statement))
        if any(_names_package(node) for node in nodes):
            calls = [node for node in nodes if isinstance(node, ast.Call)]
            asked = [getattr(c.func, "id", "") for c in calls if any(map(_names_package, c.args))]
            yield Probe(statement.name, statement.lineno, tuple(dict.fromkeys(filter(None, asked))))


def _names_package(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(_NAME.match(item.name) for item in node.names)
    if isinstance(node, ast.ImportFrom):
        return bool(_NAME.match(node.module or ""))
    value = getattr(node, "value", None)
    return isinstance(node, ast.Constant) and isinstance(value, str) and bool(_NAME.match(value))


def _taken(body: list[ast.stmt]) -> Iterator[Taken]:
    scope = list(_bindings(body))
    for statement, trail in _statements(body, ()):
        if not isinstance(statement, ast.ImportFrom):
            continue
        for item in statement.names:
            bound = item.asname or item.name
            guard, _ = _guard(trail, bound, set())
            own = guard.failing if guard else ()
            rebound = any(
                b.name == bound and b.line != statement.lineno and b not in own for b in scope
            )
            module = statement.module or ""
            yield Taken(statement.lineno, statement.level, module, item.name, bound, rebound)
