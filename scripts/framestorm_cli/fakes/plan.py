"""What stand-ins share: plan.json beside them, and which of its entries a start of a program takes."""

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(sys.argv[0]).resolve().parent
_SCRIPTS = Path(__file__).parents[2]


def install(program: Path, name: str) -> None:
    """Makes `program` the stand-in that the module `name` of this package is."""
    program.write_text(
        f"#!{sys.executable} -I\nimport sys\nsys.path.insert(0, {str(_SCRIPTS)!r})\n"
        f"from framestorm_cli.fakes import {name}\nsys.exit({name}.main())\n"
    )
    program.chmod(0o755)


def read() -> dict[str, Any]:
    plan: dict[str, Any] = json.loads((HERE / "plan.json").read_text())
    return plan


def next_entry(entries: list[dict[str, Any]] | None, name: str) -> dict[str, Any]:
    """The entry for this start, the last one again when they run out; starts are counted by files, so
    parallel ones differ."""
    entries = entries or [{}]
    number = 0
    while True:
        try:
            (HERE / f"{name}.start{number}").touch(exist_ok=False)
            break
        except FileExistsError:
            number += 1
    (HERE / f"{name}.start{number}").write_text(json.dumps(sys.argv[1:]))
    return entries[min(number, len(entries) - 1)]


def write_findings(
    out: Path, findings: list[dict[str, Any]], described: dict[str, Any], artifact: str
) -> None:
    """findings.jsonl; `artifact`: the file of each, with {key} and {index} filled in."""
    with (out / "findings.jsonl").open("w") as file:
        for index, finding in enumerate(findings):
            name = artifact.format(key=finding["key"], index=index)
            (out / name).parent.mkdir(exist_ok=True)
            (out / name).write_bytes(b"FAKE" + finding["key"].encode())
            record = {"type": "finding", "artifact": name, **described, **finding}
            file.write(json.dumps(record) + "\n")
