"""Threads and forks: all see one finished module, and nobody waits for ever."""

from __future__ import annotations

import os

import pytest
from faults import REAL_INIT, build_real

# A join that does not come back shows where every thread stands.
BOUND = """
import faulthandler, sys, threading
faulthandler.dump_traceback_later(60, exit=True)
def join(threads):
    for thread in threads:
        thread.join(45)
        assert not thread.is_alive(), thread
"""


@pytest.mark.parametrize("state", ["real", "broken", "no-extension", "absent"])
@pytest.mark.parametrize("interval", ["1e-6", "0.005"])
def test_sixteen_threads_at_once(site, state: str, interval: str):
    if state != "absent":
        build_real(
            site.folder,
            init=REAL_INIT + ("raise OSError('no')\n" if state == "broken" else ""),
            extension=None
            if state == "no-extension"
            else "def fast_hadamard_transform(x, s):\n    1",
        )
    site.run(
        BOUND
        + f"""
sys.setswitchinterval({interval})
spellings = [
    "import fast_hadamard_transform as found; found.hadamard_transform",
    "from fast_hadamard_transform import hadamard_transform; found = hadamard_transform",
    # Not `import package.interface`: beside `import package`, CPython takes the two locks in
    # opposite order, and the real package then meets its _DeadlockError, too.
    "from fast_hadamard_transform import fast_hadamard_transform_interface as found",
    "import fast_hadamard_transform_cuda as found; found.fast_hadamard_transform",
]
barrier = threading.Barrier(16)
seen, errors = [[] for _ in spellings], []
def work(number):
    barrier.wait()
    try:
        scope = {{}}
        exec(spellings[number % 4], scope)
        seen[number % 4].append(scope["found"])
    except BaseException as error:
        errors.append(error)
threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(16)]
for thread in threads:
    thread.start()
join(threads)
assert not errors, errors
assert [len(set(map(id, found))) for found in seen[:3]] == [1, 1, 1], seen
assert probe.check_whole() == {"real" if state == "real" else "stand-in"!r}
assert seen[0][0] is sys.modules[probe.PACKAGE] and seen[2][0] is sys.modules[probe.INTERFACE]
# A healthy extension may have been imported before the package failed. And while the real package
# is tried, ours is set aside: two may have been made, of the same functions.
functions = {{module.fast_hadamard_transform for module in seen[3]}}
assert {state == "broken"} or functions == {{sys.modules[probe.EXTENSION].fast_hadamard_transform}}
assert len(log) == {0 if state == "real" else 1}, log
from hadamard_finder.finder import STATE
assert STATE.loading == 0 and not STATE.asking
"""
    ).check()


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize(
    "what",
    [
        "import fast_hadamard_transform",
        "from fast_hadamard_transform import hadamard_transform",
        "import importlib.util; assert importlib.util.find_spec('fast_hadamard_transform')",
        "import fast_hadamard_transform_cuda",
        "import importlib.util; assert importlib.util.find_spec('fast_hadamard_transform_cuda')",
    ],
)
def test_a_thread_of_the_package_itself(site, what: str, fails: bool):
    # Not joined by the package: that deadlocks in CPython without us, too.
    build_real(
        site.folder,
        init="import threading, gates\n"
        "def work(gates=gates, code=compile(gates.code, 'code', 'exec')):\n"
        "    gates.running.set()\n"
        "    exec(code, {})\n"
        "    gates.done.append(1)\n"
        "gates.thread = threading.Thread(target=work, daemon=True)\n"
        "gates.thread.start()\n"
        "gates.running.wait(30)\n"
        f"{REAL_INIT}{'raise OSError' if fails else ''}\n",
    )
    site.run(
        BOUND
        + f"""
import types
gates = sys.modules["gates"] = types.ModuleType("gates")
gates.running, gates.done, gates.code = threading.Event(), [], {what!r}
import fast_hadamard_transform
join([gates.thread])
assert gates.done == [1]
assert probe.check_whole() == {"stand-in" if fails else "real"!r}
"""
    ).check()


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("state", ["absent", "broken"])
def test_two_threads_and_two_locks_in_opposite_order(site, place: str, state: str):
    """One thread imports torch, which wants the package; the other is in a find_spec for that.

    Finders run under the global import lock. Were torch, or anything else, imported in ours, both
    threads would wait for ever.
    """
    if state == "broken":
        build_real(site.folder, init="raise OSError('no')")
    site.write(
        "torch/__init__.py",
        """
        import gates
        gates.in_torch.set()
        gates.in_finder.wait(30)
        try:
            import fast_hadamard_transform
        except ImportError:
            pass
        from torch import autograd
        class Tensor:
            pass
        """,
    )
    site.write("torch/autograd.py", "class Function:\n    pass\n")
    site.run(
        BOUND
        + f"""
import types
gates = sys.modules["gates"] = types.ModuleType("gates")
gates.in_torch, gates.in_finder = threading.Event(), threading.Event()
class Other:
    def find_spec(self, name, path=None, target=None):
        if name == probe.PACKAGE:
            gates.in_finder.set()
sys.meta_path.insert({0 if place == "before" else 1}, Other())
def first():
    import torch
def second():
    gates.in_torch.wait(30)
    try:
        import fast_hadamard_transform
    except ImportError:
        pass  # torch was half there, as for anybody who imports it then
threads = [threading.Thread(target=work, daemon=True) for work in (first, second)]
for thread in threads:
    thread.start()
join(threads)
import fast_hadamard_transform
assert probe.check_whole() == "stand-in"
""",
        torch=None,
    ).check()


def test_threads_that_ask_while_others_import(site):
    build_real(site.folder, init=REAL_INIT + "raise OSError('no')\n")
    site.run(
        BOUND
        + """
import importlib.util
sys.setswitchinterval(1e-6)
barrier, errors = threading.Barrier(8), []
def work(number):
    barrier.wait()
    try:
        for _ in range(50):
            if number % 2:
                import fast_hadamard_transform
                assert fast_hadamard_transform.hadamard_transform.__module__ == probe.INTERFACE
            else:
                assert importlib.util.find_spec(probe.PACKAGE) is not None
                assert importlib.util.find_spec(probe.EXTENSION) is not None
    except BaseException as error:
        errors.append(error)
threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(8)]
for thread in threads:
    thread.start()
join(threads)
assert not errors, errors
assert probe.check_whole() == "stand-in"
"""
    ).check()


@pytest.mark.parametrize("thread", [True, False])
def test_an_import_during_torchs_own(site, thread: bool):
    """A plug-in of torch that wants the package before torch is ready gets an honest answer."""
    site.write(
        "torch/__init__.py",
        """
        import sys, threading
        def plug_in():
            try:
                import fast_hadamard_transform
                sys.plug_in = "served"
            except ImportError as error:
                sys.plug_in = error
        if sys.with_thread:
            sys.plug_in_thread = threading.Thread(target=plug_in, daemon=True)
            sys.plug_in_thread.start()
        else:
            plug_in()
        from torch import autograd
        class Tensor:
            pass
        """,
    )
    site.write("torch/autograd.py", "class Function:\n    pass\n")
    site.run(
        BOUND
        + f"""
sys.with_thread = {thread}
import torch
if sys.with_thread:
    join([sys.plug_in_thread])
    assert sys.plug_in == "served", sys.plug_in
else:
    assert isinstance(sys.plug_in, ModuleNotFoundError), sys.plug_in
    assert "its stand-in does not load" in str(sys.plug_in)
import fast_hadamard_transform
assert probe.check_whole() == "stand-in"
""",
        torch=None,
    ).check()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_while_another_thread_imports(site):
    """The child imports what the thread was not importing: that one's lock has died with it."""
    build_real(
        site.folder, init="import gates\ngates.inside.set()\ngates.go.wait(30)\n" + REAL_INIT
    )
    site.run(
        BOUND
        + """
import os, signal, types, importlib.util
gates = sys.modules["gates"] = types.ModuleType("gates")
gates.inside, gates.go = threading.Event(), threading.Event()
def work():
    import fast_hadamard_transform
thread = threading.Thread(target=work, daemon=True)
thread.start()
assert gates.inside.wait(30)
child = os.fork()
if child == 0:
    signal.alarm(30)  # faulthandler's own thread has died with the fork
    try:
        import wsgiref.util
        import fast_hadamard_transform_cuda
        assert probe.kind(fast_hadamard_transform_cuda) == "real"
        assert importlib.util.find_spec(probe.PACKAGE) is not None
        os._exit(0)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
gates.go.set()
join([thread])
assert probe.check_whole() == "real"
""",
        flags=("-S", "-W", "ignore"),
    ).check()
