"""The rules of the sweep: what it repairs in modules that missed the package, and what it lists.

No lock is held, because a sweep runs inside imports; all it does can be done twice.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hadamard_finder.finder import PACKAGE, STATE, is_standin, namespace, switch
from hadamard_finder.repair.ledger import Ledger
from hadamard_finder.repair.loaded import Loaded, each
from hadamard_finder.repair.sources import NEVER_READ, Library, is_readable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hadamard_finder.repair.copies import Copy, Key
    from hadamard_finder.repair.forms import Flag, Form, Probe, Reading
    from hadamard_finder.repair.record import Leftover, Sweep

    _Flagged = tuple[Loaded, Flag, list[Form]]  # with the imports of the same try statement

_FUNCTION = "hadamard_transform"
_EARLIER = "Start hadamard_finder before this module is imported, as its start-up file does"
_START = f"{_EARLIER}."
_SUSPECT = re.compile("fast_hadamard|hadamard_transform", re.IGNORECASE)
_ON_REQUEST = f"{_EARLIER}, or call hadamard_finder.sweep(everything=True)."


def sweep(*, everything: bool = False) -> Sweep:
    """Repair modules that missed the package; return all that was repaired and left so far.

    A module's ``hadamard_transform`` that is None gets the function, and so does any other name
    that, by the module's own source, a failed import of the function left None or unbound.
    everything also fills names that stand for a module of the package, copies of such names in
    other modules, and flags that one try statement sets to True or False.

    Only modules that were imported without an active finder are looked at. Does nothing while the
    package is not loaded, and under ``HADAMARD_FINDER=off``. Calling it again is harmless.
    """
    run(everything=everything)
    return records()


def run(*, everything: bool = False) -> None:
    """Sweep, and make no records: their three classes cost 2 ms, and most sweeps find nothing."""
    package = Loaded(PACKAGE, sys.modules.get(PACKAGE), namespace(sys.modules.get(PACKAGE)))
    # A real package in another thread's hands may fail yet; the stand-in has come here itself.
    ready = is_standin(package.module) or not package.is_being_imported()
    function = package.names.get(_FUNCTION)
    if switch() != "off" and ready and callable(function):
        one = _Run(function, everything)
        one.run()
        _BOOK.leftovers = tuple(one.leftovers.values())


def undo() -> None:
    """Take every repair back whose value is still there, and forget all records."""
    _BOOK.ledger.undo()
    _BOOK.leftovers = ()


def records() -> Sweep:
    """Return what the sweeps of this process have repaired, and what the last one left."""
    from hadamard_finder.repair.record import Sweep

    return Sweep(_BOOK.ledger.repairs(), _BOOK.leftovers)


class _Book:
    def __init__(self) -> None:
        self.ledger = Ledger()
        self.library = Library()
        self.leftovers: tuple[Leftover, ...] = ()


class _Run:
    """One sweep."""

    def __init__(self, function: object, everything: bool) -> None:
        self.function = function
        self.everything = everything
        self.leftovers: dict[tuple[int, str], Leftover] = {}
        # Names that missed the package, each with the one it was copied from in the end, or itself.
        self.roots: dict[Key, Key] = {}
        self.flags: dict[Key, _Flagged] = {}
        self.copies: list[Copy] = []

    def run(self) -> None:
        readable = []
        for name, module, names in each(STATE.missed.copy()):
            if _FUNCTION in names:
                _safely(self._fill_by_name, Loaded(name, module, names))
            # is_readable() without the call, for the sake of thousands
            if "__file__" in names and name.partition(".")[0] not in NEVER_READ:
                readable.append(Loaded(name, module, names))
        for seen in readable:
            _safely(self._follow_source, seen)
        if self.roots:
            if self.everything:
                # Modules imported since may have copied what was left then.
                readable = [Loaded(*found) for found in each() if is_readable(found[0], found[2])]
            from hadamard_finder.repair.copies import trace

            self.copies = trace(self.roots, readable, _BOOK.library, _BOOK.ledger)
            for copy in self.copies:
                _safely(self._settle_copy, copy)
            _safely(self._settle_flags)

    def _fill_by_name(self, seen: Loaded) -> None:
        if seen.state(_FUNCTION) != "None" or seen.is_being_imported():
            return
        answer = _BOOK.library.ask(seen)
        line = None
        if not isinstance(answer, str):
            if _is_sentinel(answer):
                return
            lines = {item.bound: item.line for item in answer.taken}
            lines |= {form.bound: form.line for form in answer.forms if form.at_module_level}
            line = lines.get(_FUNCTION)
        self._root(seen, _FUNCTION)
        self._fill(seen, _FUNCTION, self.function, f"{PACKAGE}.{_FUNCTION}", line)

    def _follow_source(self, seen: Loaded) -> None:
        answer = _BOOK.library.ask(seen)
        if answer in ("silent", "near") or seen.is_being_imported():
            return
        if isinstance(answer, str):
            self._list_suspects(seen)
        else:
            forms = [form for form in answer.forms if form.at_module_level]
            self._settle_forms(seen, forms)
            self._find_flags(seen, forms)
            self._list_probes(seen, answer.probes)

    def _settle_forms(self, seen: Loaded, forms: list[Form]) -> None:
        missed = [form for form in forms if form.bound and self._has_missed(seen, form)]
        for form in missed:
            self._root(seen, form.bound)
        fillable = {form.bound for form in missed if form.proven and self._is_for_us(form)}
        for form in missed:
            # A second form that binds the same name may have been settled by the first.
            if seen.state(form.bound) == form.outcome and self._value(form) is not None:
                self._settle_form(seen, form, fillable)

    def _has_missed(self, seen: Loaded, form: Form) -> bool:
        if _BOOK.ledger.has(seen, form.bound):
            return True
        return seen.state(form.bound) == form.outcome and seen.has_passed(form.end)

    def _settle_form(self, seen: Loaded, form: Form, fillable: set[str]) -> None:
        lacking = [name for name in form.companions if name not in fillable and seen.lacks(name)]
        if form.kind == "probe":
            self._leave(seen, form.bound, f"holds the answer of {form.statement}", form.line)
        elif not form.proven:
            reason = f"{form.outcome} may not come from the failed `{form.statement}`"
            self._leave(seen, form.bound, reason, form.line)
        elif lacking:
            reason = f"the try statement of `{form.statement}` also binds {lacking[0]}, missing too"
            self._leave(seen, form.bound, reason, form.line)
        elif self._is_for_us(form):
            after = f"{form.module}.{form.attribute}" if form.attribute else f"module {form.module}"
            self._fill(seen, form.bound, self._value(form), after, form.line)
        else:
            reason = f"{form.outcome} since `{form.statement}` failed, and may serve as a flag"
            self._leave(seen, form.bound, reason, form.line, _ON_REQUEST)

    def _is_for_us(self, form: Form) -> bool:
        """Whether this sweep fills what the statement binds."""
        value = self._value(form)
        if value is None:
            return False
        is_module = issubclass(type(value), ModuleType)
        return self.everything or (form.outcome != "False" and not is_module)

    def _value(self, form: Form) -> object:
        """Return what the import statement would bind now; None where it would fail."""
        module = sys.modules.get(form.module)
        return namespace(module).get(form.attribute) if form.attribute else module

    def _find_flags(self, seen: Loaded, forms: list[Form]) -> None:
        for form in forms:
            if form.bound and (seen.name, form.bound) not in self.roots:
                continue  # the consumer has found something else, the flag says so
            for flag in form.flags:
                key = (seen.name, flag.name)
                if seen.state(flag.name) == "False" or _BOOK.ledger.has(seen, flag.name):
                    self._root(seen, flag.name)
                    self.flags.setdefault(key, (seen, flag, []))[2].append(form)

    def _list_suspects(self, seen: Loaded) -> None:
        for name, value in list(seen.names.items()):
            if (value is None or value is False) and _SUSPECT.search(name):
                reason = "its source cannot be read, so nothing is known of where this comes from"
                self._leave(seen, name, reason, None)

    def _list_probes(self, seen: Loaded, probes: Iterable[Probe]) -> None:
        for probe in probes:
            cached = [n for n in (probe.name, *probe.calls) if _has_cached(seen.names.get(n))]
            if cached:
                calls = " and ".join(f"{seen.name}.{name}.cache_clear()" for name in cached)
                reason = "may have cached that the package is missing"
                self._leave(seen, probe.name, reason, probe.line, f"Call {calls}.")

    def _settle_copy(self, copy: Copy) -> None:
        if self.roots[copy.origin] in self.flags or not copy.seen.state(copy.name):
            return
        value = namespace(sys.modules.get(copy.origin[0])).get(copy.origin[1])
        if self.everything and value is not None and value is not False and not copy.rebound:
            self._fill(copy.seen, copy.name, value, ".".join(copy.origin), copy.line)
        else:
            self._leave_copy(copy)

    def _settle_flags(self) -> None:
        groups = {
            key: [copy for copy in self.copies if self.roots[copy.origin] == key]
            for key in self.flags
        }
        obstacles = {key: self._obstacle(key, copies) for key, copies in groups.items()}
        for key, copies in groups.items():
            seen, flag, forms = self.flags[key]
            # The flags of one try statement go together.
            siblings = [other for other in self.flags if self.flags[other][2] == forms]
            obstacle = next(filter(None, (obstacles[other] for other in siblings)), "")
            holders = [(seen, flag.name, flag.line)]
            holders += [(copy.seen, copy.name, copy.line) for copy in copies]
            for holder, name, line in holders:
                if holder.state(name) != "False":
                    continue
                if self.everything and not obstacle:
                    self._fill(holder, name, True, "True", line)
                else:
                    reason = obstacle or f"says that `{forms[0].statement}` failed"
                    self._leave(holder, name, reason, line, _START if obstacle else _ON_REQUEST)

    def _obstacle(self, key: Key, copies: list[Copy]) -> str:
        """Return why a flag must stay False; "" where it can be set together with its copies.

        Half of them set is worse than none: one side would rotate and the other not.
        """
        seen, flag, forms = self.flags[key]
        if not flag.proven:
            return f"no try statement sets {flag.name} both to True and, where it fails, to False"
        for form in forms:
            for name in (form.bound, *form.companions):
                if name and seen.lacks(name) and not self._is_to_come(seen, name):
                    return f"the try statement that sets {flag.name} also binds {name}, missing too"
        for copy in copies:
            if copy.rebound:
                return f"{copy.seen.name}.{copy.name}, a copy, may be False for another reason"
        family = seen.name.partition(".")[0]
        for name, _, names in each():
            same = names.get(flag.name) is False and name.partition(".")[0] == family
            if same and (name, flag.name) not in self.roots:
                return f"{name}.{flag.name} may be a copy that cannot be set with it"
        return ""

    def _is_to_come(self, seen: Loaded, name: str) -> bool:
        left = self.leftovers.get((id(seen.module), name))
        on_request = left is not None and left.advice == _ON_REQUEST
        return (seen.name, name) in self.flags or (on_request and not self.everything)

    def _root(self, seen: Loaded, name: str) -> None:
        self.roots[seen.name, name] = (seen.name, name)

    def _fill(self, seen: Loaded, name: str, value: object, after: str, line: int | None) -> None:
        if _BOOK.ledger.has(seen, name):
            reason = "has been set back since a sweep filled it"
            self._leave(seen, name, reason, line, "Set it again where that was not intended.")
        else:
            _BOOK.ledger.fill(seen, name, value, after, line)

    def _leave_copy(self, copy: Copy) -> None:
        reason = f"is a copy of {'.'.join(copy.origin)}"
        advice = _START if copy.rebound else _ON_REQUEST
        self._leave(copy.seen, copy.name, reason, copy.line, advice)

    def _leave(
        self, seen: Loaded, name: str, reason: str, line: int | None, advice: str = _START
    ) -> None:
        from hadamard_finder.repair.record import Leftover

        record = Leftover(seen.name, name, reason, advice, seen.file, line)
        # By the module itself: it may have several names in sys.modules.
        self.leftovers.setdefault((id(seen.module), name), record)


def _is_sentinel(reading: Reading) -> bool:
    """Whether None means "not tried yet": the module imports the package in functions only."""
    imports = [form for form in reading.forms if form.kind != "probe"]
    copied = any(taken.bound == _FUNCTION for taken in reading.taken)
    return bool(imports) and not copied and not any(form.at_module_level for form in imports)


def _has_cached(function: Any) -> bool:
    try:
        info = getattr(function, "cache_info", None)
        return callable(function.cache_clear) and (info is None or info().currsize > 0)
    except Exception:  # whatever a decorator put there
        return False


def _safely(step: Callable[..., None], *arguments: object) -> None:
    with suppress(Exception):  # one odd module must not keep the others from being repaired
        step(*arguments)


# A reload of this file keeps what the first run did.
_BOOK: _Book = globals().get("_BOOK") or _Book()
