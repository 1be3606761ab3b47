"""The schemas in docs/reference are those of the records that are written."""

import os
from pathlib import Path

import msgspec
import pytest

from framestorm_cli.base import paths
from framestorm_cli.fuzz.summary import Summary as FuzzSummary
from framestorm_cli.gate.reporting import GateRecord
from framestorm_cli.reports import schema
from framestorm_cli.stress.summary import Summary as StressSummary

WRITE = "FRAMESTORM_WRITE_SCHEMAS"


@pytest.mark.parametrize(
    ("name", "record"),
    [("summary", FuzzSummary), ("stress-summary", StressSummary), ("gate", GateRecord)],
)
def test_schemas_are_those_of_the_records(name: str, record: type[msgspec.Struct]) -> None:
    file = paths.CHECKOUT / "docs" / "reference" / f"{name}.schema.json"
    wanted = schema.document(record)
    if os.environ.get(WRITE):
        file.write_bytes(wanted)
    assert file.read_bytes() == wanted, f"{WRITE}=1 writes {file.name} anew"


def test_what_is_not_as_the_schema_says_is_not_written(tmp_path: Path) -> None:
    class Counted(msgspec.Struct):
        walks: schema.Number

    schema.write(tmp_path / "good.json", Counted(1))
    assert msgspec.json.decode((tmp_path / "good.json").read_bytes()) == {"walks": 1}
    with pytest.raises(msgspec.ValidationError):
        schema.write(tmp_path / "bad.json", Counted(-1))
    assert not (tmp_path / "bad.json").exists()
