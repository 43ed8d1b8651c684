"""The JSON form and its schema say the same, and so do the typed records."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from support import REPO

from hadamard_finder.repair import record
from hadamard_finder.report import facts

SCHEMA = json.loads((REPO / "hadamard_finder" / "report" / "status.schema.json").read_text())
RECORDS = [
    item
    for module in (facts, record)
    for item in vars(module).values()
    if dataclasses.is_dataclass(item) and item not in (facts.Status, record.Sweep)
]


def names(record: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(record)]


def test_the_schema_describes_every_field_of_status_and_no_other() -> None:
    assert list(SCHEMA["properties"]) == SCHEMA["required"] == names(facts.Status)


def test_the_schema_knows_every_record() -> None:
    assert {record.__name__ for record in RECORDS} == set(SCHEMA["$defs"])


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_the_schema_describes_every_field_of_a_record(record: Any) -> None:
    described = SCHEMA["$defs"][record.__name__]
    assert list(described["properties"]) == described["required"] == names(record)


def test_the_number_of_the_schema_is_the_one_that_is_written() -> None:
    assert SCHEMA["properties"]["schema"]["const"] == facts.SCHEMA


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({}, "$: no a"),
        ({"a": "x"}, "$.a: 'x' is no integer"),
        ({"a": True}, "$.a: True is no integer"),
        ({"a": 1, "b": [{"c": "y"}]}, "$.b[0].c: 'y' is none of ['x', None]"),
    ],
)
def test_the_validator_of_these_tests_finds_faults(validate: Any, value: Any, problem: str) -> None:
    schema = {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "integer"}, "b": {"items": {"$ref": "#/$defs/C"}}},
        "$defs": {"C": {"type": "object", "properties": {"c": {"enum": ["x", None]}}}},
    }
    assert validate(value, schema) == [problem]
    assert validate({"a": 1, "b": [{"c": None}]}, schema) == []
