import json
from pathlib import Path

from framestorm_cli.findings import records
from framestorm_cli.findings.finding import Code, Count
from framestorm_cli.findings.records import FindingsFile, merge_stats


def test_a_torn_last_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "findings.jsonl"
    line = json.dumps({"type": "finding", "key": "a", "kind": "fault"})
    path.write_text(line + "\n" + line[:20])
    file = FindingsFile(tmp_path)
    file.poll()
    assert len(file.findings) == 1
    with path.open("a") as more:
        more.write(line[20:] + "\n")
    file.poll()
    assert len(file.findings) == 2
    assert file.unreadable_lines == 0


def test_damaged_lines_are_counted_and_do_not_hide_others(tmp_path: Path) -> None:
    good = json.dumps({"type": "finding", "key": "a", "kind": "fault"})
    (tmp_path / "findings.jsonl").write_text(f"{{broken\n{good}\n[1]\n{good}\n")
    file = records.read_findings(tmp_path)
    assert len(file.findings) == 2
    assert file.unreadable_lines == 2


def test_the_newest_count_wins_and_never_falls_below_what_was_recorded(tmp_path: Path) -> None:
    lines = [
        {"type": "finding", "key": "a", "kind": "fault"},
        {"type": "count", "key": "a", "count": 5, "rechecks": 2, "rechecks_hit": 1},
        {"type": "count", "key": "a", "count": 9, "rechecks": 4, "rechecks_hit": 3},
        {"type": "finding", "key": "b", "kind": "fault"},
        {"type": "finding", "key": "b", "kind": "fault"},
    ]
    (tmp_path / "findings.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    file = records.read_findings(tmp_path)
    assert file.count_of("a") == Count("a", 9, 4, 3)
    assert file.count_of("b") == Count("b", 2, 0, 0)


def test_stats_of_processes_are_summed_and_memory_is_the_largest() -> None:
    merged: records.Json = {}
    merge_stats(
        merged,
        {
            "walks": 2,
            "rss_kb": 10,
            "edges": 5,
            "by_scenario": {"c1": {"walks": 2}},
            "unavailable": {"x": "no"},
        },
    )
    merge_stats(
        merged,
        {
            "walks": 3,
            "rss_kb": 7,
            "edges": 9,
            "by_scenario": {"c1": {"walks": 1}, "osr": {"walks": 2}},
        },
    )
    assert merged["walks"] == 5
    assert merged["rss_kb"] == 10
    assert merged["edges"] == 9  # two processes reach much the same ones
    assert merged["by_scenario"] == {"c1": {"walks": 3}, "osr": {"walks": 2}}
    assert merged["unavailable"] == {"x": "no"}


def test_last_whole_stats_line(tmp_path: Path) -> None:
    (tmp_path / "stats.jsonl").write_text('{"walks": 1}\n{"walks": 2}\n{"wal')
    assert records.read_last_stats(tmp_path) == {"walks": 2}
    assert records.read_last_stats(tmp_path / "none") == {}


def test_edges_are_read_up_to_a_torn_line(tmp_path: Path) -> None:
    assert records.read_reached(tmp_path) == []
    lines = '{"t":0.5,"new":[3,7]}\n{"t":2,"new":[1]}\n{"t":3,"ne'
    (tmp_path / "edges.jsonl").write_text(lines)
    assert records.read_reached(tmp_path) == [(0.5, [3, 7]), (2.0, [1])]


def test_current_input(tmp_path: Path) -> None:
    path = tmp_path / "current.bin"
    assert records.read_current_input(tmp_path) is None
    path.write_bytes((3).to_bytes(8, "little") + b"abcdef")
    assert records.read_current_input(tmp_path) == b"abc"
    path.write_bytes((0).to_bytes(8, "little") + b"abcdef")
    assert records.read_current_input(tmp_path) is None
    path.write_bytes((99).to_bytes(8, "little") + b"abcdef")
    assert records.read_current_input(tmp_path) is None


def test_what_older_processes_wrote_names_its_victim(tmp_path: Path) -> None:
    line = {
        "type": "finding",
        "key": "a",
        "kind": "contract",
        "text": "framestorm-input 1\nscenario osr\n",
    }
    (tmp_path / "findings.jsonl").write_text(json.dumps(line) + "\n")
    (found,) = records.read_findings(tmp_path).findings
    assert (found.scenario, found.input) == ("osr", None)


def test_an_input_is_read_with_its_values(tmp_path: Path) -> None:
    code = {"kind": "stub", "name": "call_stub", "tier": 0, "anchor": "end"}
    value = {"text": 'stub "call_stub" end', "kind": "code", "delta": 0, "code": code}
    change = {"kind": "register", "place": "pc", "value": value}
    given = {"scenario": "c1", "mode": "same-thread", "walker": "gst", "mutations": [change]}
    line = {"type": "finding", "key": "a", "kind": "fault", "artifact": "x.bin", "input": given}
    (tmp_path / "findings.jsonl").write_text(json.dumps(line) + "\n")
    (found,) = records.read_findings(tmp_path).findings
    assert found.artifact == tmp_path / "x.bin"
    assert found.input is not None
    (mutation,) = found.input.mutations
    assert (mutation.place, mutation.value.code) == ("pc", Code("stub", "call_stub", 0, "end"))
