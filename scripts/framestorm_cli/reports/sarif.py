"""SARIF 2.1.0: a kind of finding is a rule, a bucket a result."""

import re
from pathlib import Path
from typing import Any

from framestorm_cli.base import files
from framestorm_cli.reports.model import Issue, Report

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_BASE = "OUT"
_RULES = {
    "fault": "A walk faulted: it read, wrote or executed what it must not.",
    "hang": "A walk did not end.",
    "unsafe_call": "A walk called what a signal handler must not.",
    "terminal_call": "A walk ended its process.",
    "contract": "A trace is not what the walker promises.",
    "sanitizer": "A sanitizer reported a walk.",
    "vm_error": "A check of HotSpot's own failed in a walk.",
    "process_death": "The process died, or got stuck, while it was walked.",
    "program_harmed": "The program failed with walks and not without.",
}


def document(report: Report) -> dict[str, Any]:
    """The report as a SARIF log."""
    kinds = sorted({issue.signature.kind for issue in report.issues})
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "framestorm",
                        "semanticVersion": "1.0.0",
                        "rules": [_rule(kind) for kind in kinds],
                    }
                },
                "automationDetails": {"id": f"framestorm/{report.command}/{report.run}"},
                "columnKind": "utf16CodeUnits",
                "invocations": [
                    {
                        "executionSuccessful": report.exit != 2,
                        "exitCode": report.exit,
                        "arguments": list(report.argv),
                        "startTimeUtc": report.started.replace("+00:00", "Z"),
                        "toolExecutionNotifications": [
                            {"level": "error", "message": {"text": problem}}
                            for problem in report.problems
                        ],
                    }
                ],
                "results": [_result(issue, kinds) for issue in report.issues],
                "properties": dict(report.properties),
            }
        ],
    }


def write(report: Report, path: Path) -> None:
    """Raises OSError."""
    files.write_json(path, document(report))


def _rule_id(kind: str) -> str:
    return f"framestorm/{re.sub(r'[^a-z0-9]+', '-', kind.lower())}"


def _rule(kind: str) -> dict[str, Any]:
    text = _RULES.get(kind, f"A walk was found wanting: {kind}.")
    return {
        "id": _rule_id(kind),
        "name": "".join(word.capitalize() for word in re.split(r"[^A-Za-z0-9]+", kind)),
        "shortDescription": {"text": text},
        "defaultConfiguration": {"level": "error"},
    }


def _text(issue: Issue) -> str:
    state = f"[{issue.state}] " if issue.state else ""
    known = f" (known: {', '.join(issue.write_ups)})" if issue.write_ups else ""
    return f"{state}{issue.signature}: {issue.explanation}{known}"


def _result(issue: Issue, kinds: list[str]) -> dict[str, Any]:
    signature = issue.signature
    frames = issue.stack or signature.frames
    location: dict[str, Any] = {}
    if frames:
        location["logicalLocations"] = [{"fullyQualifiedName": frames[0], "kind": "function"}]
    if where := issue.report or issue.artifact:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": where, "uriBaseId": _BASE},
            "region": {"startLine": 1},
        }
    result: dict[str, Any] = {
        "ruleId": _rule_id(signature.kind),
        "ruleIndex": kinds.index(signature.kind),
        "level": "note" if issue.known else "error",
        "baselineState": "unchanged" if issue.known else "new",
        "message": {"text": _text(issue)},
        "locations": [location] if location else [],
        "occurrenceCount": max(1, issue.count),
        "partialFingerprints": {"framestormSignature/v1": issue.fingerprint},
        "properties": {
            "bucket": issue.id,
            "detail": issue.detail,
            "command": issue.command,
            "state": issue.state,
            "writeUps": list(issue.write_ups),
        },
    }
    if frames:
        result["stacks"] = [
            {
                "message": {"text": "walker stack"},
                "frames": [
                    {"location": {"logicalLocations": [{"fullyQualifiedName": name}]}}
                    for name in frames
                ],
            }
        ]
    if issue.known:
        result["suppressions"] = [{"kind": "external", "justification": "a known bucket"}]
    if issue.artifact:
        result["attachments"] = [
            {
                "description": {"text": "the artifact"},
                "artifactLocation": {"uri": issue.artifact, "uriBaseId": _BASE},
            }
        ]
    return result
