"""The check of the transform in place says which property fails, where and in which dtype."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
if not hasattr(torch, "randperm"):
    pytest.skip("only the stub of torch is installed", allow_module_level=True)

from scipy.linalg import hadamard  # noqa: E402
from support import run_python  # noqa: E402

import hadamard_finder  # noqa: E402
from hadamard_finder.report import check  # noqa: E402

IDENTITY = "def hadamard_transform(x, scale=1.0):\n    return x\n"


@functools.cache
def matrix(width: int) -> Any:
    return torch.tensor(hadamard(width), dtype=torch.float64)


def dense(x: Any, scale: float = 1.0) -> Any:
    return (x.double() @ matrix(x.shape[-1]) * scale).to(x.dtype)


def results(function: Callable[..., Any], kind: str = "foreign") -> dict[tuple[str, str], str]:
    found = list(check.run(function, kind, ["cpu"]))
    assert len(found) == 8
    return {(item.property, item.dtype): item.result for item in found}


@pytest.mark.parametrize("algorithm", ["butterfly", "matmul"])
def test_the_standins_transform_passes(algorithm: Any) -> None:
    def function(x: Any, scale: float = 1.0) -> Any:
        return hadamard_finder.fwht(x, scale, algorithm=algorithm)

    assert set(results(function, "stand-in").values()) == {"passed"}


def test_an_independent_transform_passes() -> None:
    assert set(results(dense).values()) == {"passed"}


def test_another_order_of_summation_in_the_input_s_own_dtype_passes() -> None:
    def own_dtype(x: Any, scale: float = 1.0) -> Any:
        return x @ matrix(x.shape[-1]).to(x.dtype) * scale

    found = results(own_dtype)
    assert {found["values", dtype] for dtype in ("float32", "float16", "bfloat16")} == {"passed"}


@pytest.mark.parametrize(
    ("wrong", "fails"),
    [
        (lambda x, _=1.0: x, {"values", "involution"}),
        (lambda x, scale=1.0: dense(x, scale) * 1.5, {"values", "involution"}),
        # The scale left out, which an involution without a scale cannot show.
        (lambda x, _=1.0: dense(x), {"values"}),
        # Rows in another order: a Hadamard matrix still, but not Sylvester's.
        (lambda x, scale=1.0: dense(x, scale).roll(1, -1), {"values", "involution"}),
        (lambda x, scale=1.0: -dense(x, scale), {"values"}),
        (lambda x, scale=1.0: dense(x, scale).double(), {"values", "involution"}),
        (lambda x, scale=1.0: dense(x, scale)[..., :-1], {"values", "involution"}),
        (lambda *_: None, {"values", "involution"}),
    ],
)
def test_a_wrong_transform_fails(wrong: Callable[..., Any], fails: set[str]) -> None:
    found = results(wrong)
    for dtype in ("float32", "float16", "bfloat16"):
        failing = {
            name for (name, of), result in found.items() if of == dtype and result == "failed"
        }
        assert failing == fails


def test_a_fault_of_one_dtype_is_told_for_that_dtype_alone() -> None:
    def wrong(x: Any, scale: float = 1.0) -> Any:
        return x if x.dtype == torch.bfloat16 else dense(x, scale)

    assert {key for key, result in results(wrong).items() if result == "failed"} == {
        ("values", "bfloat16"),
        ("involution", "bfloat16"),
    }


def test_a_fault_of_wide_rows_alone_is_found() -> None:
    def wrong(x: Any, scale: float = 1.0) -> Any:
        return x if x.shape[-1] > 1024 else dense(x, scale)

    (detail, *_) = [item.detail for item in check.run(wrong, "foreign", ["cpu"])]
    assert detail.startswith("width 4096: ")
    assert "values are wrong, the first at [0, " in detail


def refuse(*_: Any) -> Any:
    raise RuntimeError("Expected x.is_cuda() to be true")


def test_the_real_package_may_refuse_what_it_never_could() -> None:
    assert set(results(refuse, "real").values()) == {"unsupported"}


def test_nobody_else_may_refuse() -> None:
    foreign = results(refuse, "foreign")
    assert {key[1] for key, result in foreign.items() if result == "unsupported"} == {"float64"}
    assert set(results(refuse, "stand-in").values()) == {"failed"}
    (first, *_) = check.run(refuse, "foreign", ["cpu"])
    assert first.detail == "raises RuntimeError: Expected x.is_cuda() to be true"


def test_a_device_without_a_dtype_is_no_failure() -> None:
    found = list(check.run(dense, "stand-in", ["nowhere"]))
    assert {item.result for item in found} == {"unsupported"}


def test_the_command_line_checks_the_standin(ask: Callable[..., Any]) -> None:
    answer = ask("--check", torch=None)
    assert (answer.code, answer.status["works"], answer.codes) == (0, True, [])
    assert {item["result"] for item in answer.status["checks"]} == {"passed"}
    dtypes = {item["dtype"] for item in answer.status["checks"] if item["device"] == "cpu"}
    assert dtypes == {"float32", "bfloat16", "float16", "float64"}


def test_status_checks_the_transform_of_this_process() -> None:
    code = """
    import sys
    import types
    import hadamard_finder
    found = hadamard_finder.status(check=True)
    assert (found.source, found.works, found.imported) == ("stand-in", True, True), found
    assert {check.result for check in found.checks} == {"passed"}
    shim = types.ModuleType("fast_hadamard_transform")
    shim.hadamard_transform = lambda x, scale=1.0: x
    sys.modules["fast_hadamard_transform"] = shim
    found = hadamard_finder.status(check=True)
    assert (found.source, found.works) == ("foreign", False), found
    assert "wrong-values" in {finding.code for finding in found.findings}
    """
    run_python(code).check()


def test_the_command_line_convicts_an_identity_stub(
    ask: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "fast_hadamard_transform.py").write_text(IDENTITY)
    answer = ask("--check", torch=None, path=[tmp_path])
    assert (answer.code, answer.status["source"], answer.status["works"]) == (1, "foreign", False)
    found = answer.finding("wrong-values")
    dtypes = "float32, bfloat16, float16, float64"
    where = f"values on cpu in {dtypes}; involution on cpu in {dtypes}"
    assert found["cause"] == f"The transform in place is wrong: {where}."
    assert found["command"] == "export HADAMARD_FINDER=force"
    # The command that it names helps.
    answer = ask(path=[tmp_path], env={"HADAMARD_FINDER": "force"})
    assert (answer.code, answer.status["source"]) == (0, "stand-in")


def test_a_transform_that_kills_in_the_check(ask: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "fast_hadamard_transform.py").write_text(
        "import os\ndef hadamard_transform(x, scale=1.0):\n    os.kill(os.getpid(), 11)\n"
    )
    answer = ask("--check", torch=None, path=[tmp_path])
    assert (answer.code, answer.status["works"]) == (1, False)
    assert answer.status["reason"] == "the check is ended by SIGSEGV"
    assert "SIGSEGV" in answer.finding("unchecked")["cause"]
