"""Where the real package works nothing changes."""

from __future__ import annotations

import pytest
from faults import REAL_INIT, build_real

FACTS = """
import importlib, inspect, json, pickle, sys
import fast_hadamard_transform as package
import fast_hadamard_transform_cuda as extension
interface = sys.modules[probe.INTERFACE]
facts = []
for module in (package, interface, extension):
    spec = module.__spec__
    facts.append([
        sorted(vars(module)), module.__file__, module.__name__, module.__package__,
        type(module.__loader__).__name__, module.__loader__.path, type(module).__name__,
        spec.origin, spec.cached, spec.has_location, spec.parent, repr(spec.loader_state),
        spec.submodule_search_locations, spec.loader is module.__loader__,
        sys.modules[module.__name__] is module, inspect.getsource(module),
    ])
facts.append(package.hadamard_transform(1, 2))
facts.append(pickle.loads(pickle.dumps(package.hadamard_transform)) is package.hadamard_transform)
facts.append(importlib.reload(package) is package)
facts.append([line for line in log])
print(json.dumps(facts))
"""


@pytest.mark.parametrize("switch", ["auto", "off"])
def test_all_that_can_be_seen_is_as_without_us(site, switch: str):
    build_real(site.folder)
    env = {"HADAMARD_FINDER": switch, "PYTHONDONTWRITEBYTECODE": "1"}
    assert site.run(FACTS, env=env).json() == site.run(FACTS, env=env, start=False).json()


def test_the_module_object_and_loader_are_untouched(site):
    build_real(site.folder, init=f"import sys\nsys.made = sys.modules[__name__]\n{REAL_INIT}")
    site.run(
        """
        import gc, sys
        import fast_hadamard_transform
        assert sys.made is fast_hadamard_transform
        assert probe.check_whole() == "real" and not log
        from hadamard_finder import finder
        del sys.made
        gc.collect()
        guard = finder._lookup.Guard
        assert not [item for item in gc.get_objects() if type(item) is guard]
        assert "logging" not in sys.modules or "hadamard_finder.notice" not in sys.modules
        assert not finder.STATE.causes and not finder.STATE.told
        """
    ).check()


def test_an_error_of_the_real_one_at_call_time_is_its_own(site):
    build_real(
        site.folder, extension="def fast_hadamard_transform(x, scale):\n    raise OSError(x)"
    )
    site.run(
        """
        import fast_hadamard_transform
        try:
            fast_hadamard_transform.hadamard_transform("here")
        except OSError as error:
            assert str(error) == "here"
        assert probe.check_whole() == "real"
        """
    ).check()


def test_a_foreign_stub_is_left_alone(site):
    site.run(
        """
        import importlib, sys, types
        stub = types.ModuleType(probe.PACKAGE)
        stub.hadamard_transform = len
        del stub.__spec__
        sys.modules[probe.PACKAGE] = stub
        import fast_hadamard_transform
        from fast_hadamard_transform import hadamard_transform
        assert fast_hadamard_transform is stub and hadamard_transform is len and not log
        import hadamard_finder
        hadamard_finder.activate()
        hadamard_finder.deactivate()
        assert sys.modules[probe.PACKAGE] is stub
        """
    ).check()


def test_a_mock_as_a_stub_is_left_alone(site):
    site.run(
        """
        import sys
        from unittest.mock import MagicMock
        stub = sys.modules[probe.PACKAGE] = MagicMock()
        sys.modules[probe.EXTENSION] = MagicMock()
        from fast_hadamard_transform import hadamard_transform
        import fast_hadamard_transform_cuda
        assert hadamard_transform is stub.hadamard_transform and not log
        import hadamard_finder
        hadamard_finder.activate()
        hadamard_finder.deactivate()
        assert sys.modules[probe.PACKAGE] is stub
        hadamard_finder.start()
        del sys.modules[probe.EXTENSION]
        import fast_hadamard_transform_cuda
        assert probe.kind(fast_hadamard_transform_cuda) == "stand-in"
        """
    ).check()


def test_a_lazy_module_in_its_place_is_not_woken(site):
    """Reading ``__dict__`` is enough to make transformers' and apipkg's modules load."""
    site.run(
        """
        import sys, types
        woken = []
        class Lazy(types.ModuleType):
            def __getattribute__(self, name):
                woken.append(name)
                return super().__getattribute__(name)
        lazy = sys.modules[probe.PACKAGE] = Lazy(probe.PACKAGE)
        woken.clear()
        import fast_hadamard_transform_cuda
        assert "__dict__" not in woken, woken
        assert sys.modules[probe.PACKAGE] is lazy
        """
    ).check()
