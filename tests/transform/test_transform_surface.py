"""The names that the stand-in re-exports, and what importing them costs."""

import inspect
import io
import pickle
import sys
import types

import pytest
import torch
from support import REPO, STUB_TORCH, run_python
from transform.golden_cases import differing

from hadamard_finder.transform import surface

INTERFACE = "fast_hadamard_transform.fast_hadamard_transform_interface"
ORDERS = {"": 1, "12N": 12, "20N": 20, "28N": 28, "40N": 40}
PUBLIC = [
    *(f"hadamard_transform{'_' * bool(n)}{n}" for n in ORDERS),
    "hadamard_transform_ref",
    *(f"HadamardTransform{n}Fn" for n in ORDERS),
]
RAW = [f"fast_hadamard_transform{'_' * bool(n)}{n}" for n in ORDERS]


@pytest.mark.parametrize(
    ("module", "name"),
    [(INTERFACE, name) for name in PUBLIC] + [("fast_hadamard_transform_cuda", n) for n in RAW],
)
def test_pickles_move_between_the_real_package_and_the_stand_in(monkeypatch, module, name):
    shell = types.ModuleType(module)
    setattr(shell, name, getattr(surface, name))
    monkeypatch.setitem(sys.modules, INTERFACE.partition(".")[0], types.ModuleType("package"))
    monkeypatch.setitem(sys.modules, module, shell)
    stored = pickle.dumps(getattr(surface, name))
    assert module.encode() in stored
    assert pickle.loads(stored) is getattr(surface, name)


def test_a_saved_module_that_holds_the_function(monkeypatch):
    shell = types.ModuleType(INTERFACE)
    shell.hadamard_transform = surface.hadamard_transform
    monkeypatch.setitem(sys.modules, INTERFACE.partition(".")[0], types.ModuleType("package"))
    monkeypatch.setitem(sys.modules, INTERFACE, shell)
    module = torch.nn.Linear(4, 4)
    module.rotate = surface.hadamard_transform
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert loaded.rotate is surface.hadamard_transform
    x = torch.randn(2, 4)
    assert differing(loaded(loaded.rotate(x)).detach(), module(module.rotate(x)).detach()) == 0


def test_the_signature_is_the_real_one():
    parameters = inspect.signature(surface.hadamard_transform).parameters
    assert list(parameters) == ["x", "scale"]
    assert parameters["scale"].default == 1.0


@pytest.mark.parametrize("suffix", ORDERS)
def test_the_function_classes(suffix):
    function = getattr(surface, f"HadamardTransform{suffix}Fn")
    plain = getattr(surface, f"hadamard_transform{'_' * bool(suffix)}{suffix}")
    assert issubclass(function, torch.autograd.Function)
    x = torch.randn(2, 50, dtype=torch.float64, requires_grad=True)
    assert differing(function.apply(x, 0.3).detach(), plain(x, 0.3).detach()) == 0
    assert differing(function.apply(x).detach(), plain(x).detach()) == 0
    ours, theirs = (
        torch.autograd.grad(f(x, 0.3).pow(3).sum(), x)[0] for f in (function.apply, plain)
    )
    assert differing(ours, theirs) == 0
    x = torch.randn(1, 13, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: function.apply(x, 0.3), (x,))
    assert torch.autograd.gradgradcheck(lambda x: function.apply(x, 0.3), (x,))


@pytest.mark.parametrize("width", [1, 5, 64])
def test_the_reference(width):
    x = torch.randn(3, width, dtype=torch.float64)
    torch.testing.assert_close(
        surface.hadamard_transform_ref(x, 0.3), surface.hadamard_transform(x, 0.3)
    )


def test_the_reference_without_scipy_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.linalg", None)
    with pytest.raises(ImportError, match="pip install scipy"):
        surface.hadamard_transform_ref(torch.zeros(4))


def test_the_package_and_its_settings_load_no_torch():
    code = """
        import sys
        import hadamard_finder.transform, hadamard_finder.transform.settings as settings
        print(settings.algorithm(), sorted({"torch", "numpy", "logging"} & set(sys.modules)))
    """
    result = run_python(code, path=[REPO])
    assert result.check().out.strip() == "butterfly []"


def test_importing_the_surface_needs_of_torch_only_the_function_class():
    code = """
        import sys
        import hadamard_finder.transform.surface
        print(sorted({"numpy", "scipy", "logging"} & set(sys.modules)))
    """
    assert run_python(code, path=[STUB_TORCH, REPO]).check().out.strip() == "[]"


def test_the_first_call_loads_neither_dynamo_nor_the_distributed_tensors():
    code = """
        import sys, torch
        before = set(sys.modules)
        from hadamard_finder.transform import fwht
        x = torch.zeros(300, 64, requires_grad=True)
        fwht(x).sum().backward()
        new = set(sys.modules) - before
        print(sorted(n for n in new if not n.startswith("hadamard_finder")))
    """
    assert run_python(code, path=[REPO]).check().out.strip() == "[]"
