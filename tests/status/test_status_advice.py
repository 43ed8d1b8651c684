"""Causes that cannot be had on every machine, from made-up reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hadamard_finder.repair.record import Leftover
from hadamard_finder.report import advice
from hadamard_finder.report.facts import Check, Finding, Status


def codes(status: Status) -> list[str]:
    return [item.code for item in advice.findings(status)]


def one(status: Status, code: str) -> Finding:
    (found,) = [item for item in advice.findings(status) if item.code == code]
    return found


def failing(status: Status, error: str, kind: str = "ImportError") -> Status:
    return replace(status, real=replace(status.real, error_type=kind, error=error))


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        ("libc10_hip.so: cannot open shared object file", "torch-without-rocm", "is a CPU build"),
        ("libtorch_cuda.so: cannot open shared object file", "torch-without-cuda", "a CPU build"),
        ("libcuda.so.1: cannot open shared object file", "driver-missing", "libcuda.so.1"),
        (
            "libnvrtc.so.12: cannot open shared object file",
            "cuda-runtime-missing",
            "libnvrtc.so.12",
        ),
        ("libgomp.so.1: cannot open shared object file", "library-missing", "libgomp.so.1"),
        ("DLL load failed while importing x: gone", "library-missing", "DLL load failed"),
        (
            "/lib/libc.so.6: version `GLIBC_2.38' not found (required by x.so)",
            "system-too-old",
            "GLIBC_2.38",
        ),
        ("dlopen(x.so): Symbol not found: __ZN3c10", "abi-mismatch", "2.13.0+cpu"),
        ("DLL load failed: The specified procedure could not be found.", "abi-mismatch", "ABI"),
        ("x.so: wrong ELF class: ELFCLASS32", "other-architecture", "another kind of processor"),
        (
            "dlopen: mach-o file, but is an incompatible architecture (have 'x86_64')",
            "other-architecture",
            "another kind of processor",
        ),
        (
            "DLL load failed: %1 is not a valid Win32 application.",
            "other-architecture",
            "another kind of processor",
        ),
        ("numpy.core.multiarray failed: _ARRAY_API not found", "numpy-abi", "NumPy"),
        ("something new", "load-failed", "raises ImportError"),
    ],
)
def test_load_failures_of_other_machines(error: str, code: str, words: str, sample: Status) -> None:
    found = one(failing(sample, error), code)
    assert words in found.cause
    assert found.severity == "note"
    assert found.step


def test_a_missing_dependency_is_named(sample: Status) -> None:
    status = failing(sample, "No module named 'einops'", "ModuleNotFoundError")
    assert one(status, "dependency-missing").step == "Install what provides einops."


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        ("cpu", "is a CPU build."),
        ("hip", "is a ROCm build."),
        ("xpu", "is an XPU build."),
        ("cuda", "has no such libraries."),
        (None, "has no such libraries."),
    ],
)
def test_the_build_of_torch_is_part_of_the_cause(
    backend: str | None, words: str, sample: Status
) -> None:
    status = replace(sample, torch=replace(sample.torch, backend=backend))
    assert one(status, "torch-without-cuda").cause.endswith(words)


def test_braces_in_an_error_do_no_harm(sample: Status) -> None:
    status = failing(sample, "lib{x}.so: {0} DLL load failed")
    assert "lib{x}.so" in one(status, "library-missing").cause


def loaded(status: Status, **changes: Any) -> Status:
    real = replace(status.real, loads=True, error_type=None, error=None, **changes)
    return replace(status, source="real", reason="the real package loads", real=real)


def test_a_healthy_package_with_a_gpu_needs_no_advice(sample: Status) -> None:
    status = loaded(sample, seconds=0.3)
    gpu = replace(status, torch=replace(status.torch, devices=("cpu", "cuda:0"), backend="cuda"))
    assert codes(gpu) == []
    assert codes(status) == ["no-gpu"]


def test_a_slow_import(sample: Status) -> None:
    status = loaded(sample, seconds=25.0)
    assert "25 s" in one(status, "slow").cause
    assert codes(loaded(sample, seconds=9.0)) == ["no-gpu"]


def test_errors_come_before_notes(sample: Status) -> None:
    status = replace(sample, source="none", works=False)
    status = replace(status, settings=(replace(sample.settings[0], value="off"),))
    found = advice.findings(status)
    assert [item.severity for item in found] == ["error", "note"]
    assert found[0].code == "off"


@pytest.mark.parametrize(
    ("signal", "words"),
    [("SIGILL", "instructions"), ("exit status 3", "its code ends the process")],
)
def test_the_end_of_a_child_is_explained(signal: str, words: str, sample: Status) -> None:
    real = replace(sample.real, signal=signal, error=None, error_type=None)
    status = replace(sample, source="none", works=False, real=real)
    assert words in one(status, "crash").cause
    assert codes(status) == ["crash"]


def test_leftovers_are_grouped_by_what_to_do(sample: Status) -> None:
    left = [
        Leftover(module, "f", "a flag", step, None, None)
        for module, step in (("a", "Start earlier."), ("b", "Sweep."), ("c", "Start earlier."))
    ]
    found = advice.findings(replace(loaded(sample), leftovers=tuple(left)))
    assert [(item.cause.partition(": ")[2], item.step) for item in found[1:]] == [
        ("a.f, c.f.", "Start earlier."),
        ("b.f.", "Sweep."),
    ]


def test_our_own_wrong_values_are_to_be_reported(sample: Status) -> None:
    checks = (Check("values", "cpu", "float32", "failed", "width 2"),)
    found = one(replace(sample, works=False, checks=checks), "wrong-values")
    assert found.step == "Please report this, with the output of:"
    assert found.cause == "The transform in place is wrong: values on cpu in float32."


def test_a_stub_in_memory_cannot_be_forced_away(sample: Status) -> None:
    checks = (Check("values", "cpu", "float32", "failed", "width 2"),)
    status = replace(sample, source="foreign", works=False, location=None, checks=checks)
    assert one(status, "wrong-values").command == ""
    assert one(status, "foreign").command == ""


def test_the_real_package_that_could_not_be_checked(sample: Status) -> None:
    checks = (Check("values", "cpu", "float32", "unsupported", "raises RuntimeError"),)
    status = replace(loaded(sample), works=False, checks=checks)
    assert "runs on no device" in one(status, "unchecked").cause
