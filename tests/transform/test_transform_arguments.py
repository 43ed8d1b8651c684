"""Bad input, the forms of scale, and the setting of the algorithm."""

import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from transform.golden_cases import differing

from hadamard_finder.transform import fwht, settings, surface
from hadamard_finder.transform.chunked import GREATEST


def test_the_call_forms_of_the_real_package():
    x = torch.randn(3, 8)
    plain = surface.hadamard_transform(x)
    assert differing(surface.hadamard_transform(x=x), plain) == 0
    assert differing(surface.hadamard_transform(x, scale=2), plain * 2) == 0
    assert differing(surface.hadamard_transform(x, 2.0), plain * 2) == 0
    assert differing(surface.fast_hadamard_transform(x, 2.0), plain * 2) == 0
    assert (
        differing(surface.fast_hadamard_transform_12N(x, 2), surface.hadamard_transform_12N(x, 2))
        == 0
    )


@pytest.mark.parametrize("width", [0, 3, 12, 100, 1023])
def test_fwht_refuses_other_widths_and_names_them(width):
    with pytest.raises(ValueError, match=rf"power of two, got {width}\b"):
        fwht(torch.zeros(2, width))


def test_the_stand_in_refuses_a_width_of_zero():
    with pytest.raises(ValueError, match="got 0"):
        surface.hadamard_transform(torch.zeros(2, 0))


@pytest.mark.parametrize(
    "x",
    [
        3.0,
        None,
        [1.0, 2.0],
        np.zeros(4, np.float32),
        torch.tensor(1.0),
        torch.zeros(4, dtype=torch.int32),
        torch.zeros(4, dtype=torch.bool),
        torch.zeros(4, dtype=torch.complex64),
        torch.zeros(4, dtype=torch.float8_e4m3fn),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "function", [fwht, surface.hadamard_transform, surface.hadamard_transform_12N]
)
def test_other_inputs_are_type_errors_that_say_what_works(function, x):
    with pytest.raises(TypeError, match="float16, bfloat16, float32 or float64"):
        function(x)


@pytest.mark.parametrize(
    "scale", [0.25, np.float32(0.25), np.float64(0.25), torch.tensor(0.25), torch.tensor([0.25]),
              torch.tensor(0.25, dtype=torch.float64), torch.tensor(0.25, dtype=torch.bfloat16)],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("algorithm", ["butterfly", "matmul"])
def test_every_kind_of_scale(scale, algorithm):
    x = torch.randn(5, 64)
    torch.testing.assert_close(fwht(x, scale, algorithm=algorithm), fwht(x) / 4)


def test_a_scale_rounds_to_float32_as_in_the_kernel():
    x = torch.full((1, 2), 1 / 3)
    expected = torch.tensor(1 / 3) * 2 * torch.tensor(0.1)
    assert fwht(x, 0.1)[0, 0] == expected
    assert fwht(x, torch.tensor(0.1, dtype=torch.float64))[0, 0] == expected


@pytest.mark.parametrize("algorithm", ["butterfly", "matmul", "compiled"])
@pytest.mark.parametrize("shape", [(2, 8), (512, 64), (64, 512)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_a_scale_beyond_float32_is_cast_as_in_the_kernel(dtype, shape, algorithm):
    x = torch.zeros(shape, dtype=dtype)
    x[:, 1] = 1
    for scale, cast in ((1e300, torch.inf), (-1e300, -torch.inf), (3.4028235e38, GREATEST)):
        wanted = (surface.fwht(x.float()).double() * cast).to(dtype)
        assert differing(surface.fwht(x, scale, algorithm=algorithm), wanted) == 0


@pytest.mark.parametrize("scale", [None, "2", 1j, torch.zeros(2), torch.tensor(1j)], ids=repr)
def test_a_scale_that_is_no_number_is_a_type_error(scale):
    with pytest.raises(TypeError, match="scale must be a real number"):
        fwht(torch.zeros(4), scale)


def test_no_gradient_reaches_the_scale():
    scale = torch.tensor(0.5, requires_grad=True)
    assert not fwht(torch.ones(4), scale).requires_grad
    x = torch.ones(4, requires_grad=True)
    fwht(x, scale).sum().backward()
    assert scale.grad is None
    assert x.grad.tolist() == [2.0, 0.0, 0.0, 0.0]


def test_an_unknown_algorithm_is_a_value_error_that_names_it():
    with pytest.raises(ValueError, match=r"'fft'.*butterfly, matmul, compiled"):
        fwht(torch.zeros(4), algorithm="fft")


@pytest.mark.parametrize("value", ["", "butterfly", "Matmul", " compiled "])
def test_the_variable_chooses(monkeypatch, value):
    monkeypatch.setenv("HADAMARD_FINDER_ALGORITHM", value)
    assert settings.algorithm() == (value.strip().lower() or "butterfly")


def test_a_bad_value_of_the_variable_warns_once_and_means_the_default(monkeypatch, caplog):
    monkeypatch.setenv("HADAMARD_FINDER_ALGORITHM", "fastest")
    monkeypatch.setattr(settings, "_seen", None)
    with caplog.at_level(logging.WARNING, "hadamard_finder"):
        x = torch.randn(3, 8)
        assert differing(fwht(x), fwht(x, algorithm="butterfly")) == 0
        fwht(x)
    (record,) = caplog.records
    assert record.name == "hadamard_finder"
    assert "'fastest'" in record.getMessage()
    assert "butterfly, matmul, compiled" in record.getMessage()


def test_the_argument_beats_the_variable(monkeypatch):
    used = []
    monkeypatch.setenv("HADAMARD_FINDER_ALGORITHM", "matmul")
    monkeypatch.setattr(
        "hadamard_finder.transform.matmul.matmul", lambda x, *_: used.append(x) or x.clone()
    )
    fwht(torch.zeros(4), algorithm="butterfly")
    assert not used
    fwht(torch.zeros(4))
    assert len(used) == 1


def test_no_submodule_bears_the_name_of_a_public_function():
    folder = Path(surface.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")}
    assert not modules & {"fwht", *(name for name in vars(surface) if name.startswith("hadamard_"))}
