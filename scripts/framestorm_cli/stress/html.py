"""report.html: one file that opens without a server or a network."""

import json
import math
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from framestorm_cli.base.machine import machine
from framestorm_cli.findings.records import Json
from framestorm_cli.native.jvm_modes import DEFAULT
from framestorm_cli.reports import templates
from framestorm_cli.stress import (
    agent,
    distortion,
    figures,
    flames,
    side_by_side,
    truth_figures,
    units,
)
from framestorm_cli.stress.cell_result import CellResult
from framestorm_cli.stress.cells import Cell
from framestorm_cli.stress.figures import OK, QUANTILES, Figures
from framestorm_cli.stress.outcome import Outcome
from framestorm_cli.stress.rates import achieved, promised
from framestorm_cli.stress.verdicts import FOUND, UNJUDGED, VERDICTS

_SETTINGS = ("walker", "mode", "interval_ns", "gc", "jit", "plain")
# A latency's axis: 100 ns to 100 ms, in powers of ten.
_LEAST_POWER, _MOST_POWER = 2.0, 8.0
_WORST = {verdict: rank for rank, verdict in enumerate(VERDICTS)}


def page(outcome: Outcome, argv: Sequence[str]) -> str:
    """The whole page."""
    environment = templates.environment("framestorm_cli.stress")
    environment.filters["number"] = lambda value: f"{value:,.0f}"
    environment.filters["nanoseconds"] = units.nanoseconds_text
    environment.filters["duration"] = units.duration_text
    return environment.get_template("report.html").render(_context(outcome, argv))


def _context(outcome: Outcome, argv: Sequence[str]) -> dict[str, Any]:
    results, plan = outcome.results, outcome.plan
    total = figures.of(results)
    return {
        "outcome": outcome,
        "plan": plan,
        "total": total,
        "machine": machine(),
        "command": shlex.join(["scripts/framestorm", *argv]),
        "started": min((one.started for one in results), default=0.0),
        "verdicts": [(v, sum(1 for one in results if one.verdict == v)) for v in VERDICTS],
        "heat": _heat(results),
        "heads": side_by_side.HEADS,
        "beside": [side_by_side.cells(line) for line in outcome.beside],
        "latencies": _latencies(results),
        "ticks": [
            (_position(10.0**power), units.nanoseconds_text(10.0**power)) for power in (2, 4, 6, 8)
        ],
        "codes": _codes(total),
        "lost": _lost(total, results),
        "checks": total.checks,
        "truth": total.truth,
        "truth_heads": truth_figures.HEADS,
        "truth_rows": [truth_figures.cells(one) for one in total.truth.walkers]
        if total.truth
        else [],
        "distortion_heads": distortion.HEADS,
        "distortions": [distortion.cells(one) for one in outcome.distortion],
        "truth_by_workload": [
            (workload, one.walker, str(one.wrong))
            for workload, one in sorted(figures.truth_by_workload(results), key=lambda row: row[0])
        ],
        "details": _json([_detail(one) for one in results]),
        "flames": _json(_flames(results, outcome)),
        "slug": _slug,
    }


def _json(data: Any) -> Markup:
    """For a script element: nothing in it can end the element."""
    text = json.dumps(data, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028"))


def _slug(verdict: str) -> str:
    return verdict.replace(" ", "-")


def _heat(results: Sequence[CellResult]) -> Json:
    """Rows of workloads, columns of settings; of repetitions the worst verdict, the others' sums."""
    by_column = figures.by(results, *_SETTINGS)
    columns = sorted(by_column, key=lambda key: (str(key[1]), str(key[0]), int(key[2]), *key[3:]))
    rows = []
    for (workload,), of_row in sorted(figures.by(results, "workload").items()):
        groups = figures.by(of_row, *_SETTINGS)
        rows.append((workload, [_heat_cell(groups[c]) if c in groups else None for c in columns]))
    heads = [_head(by_column[column][0].cell) for column in columns]
    return {"heads": heads, "rows": rows}


def _head(cell: Cell) -> Json:
    return {
        "walker": cell.walkers,
        "walkers": cell.walker,
        "mode": cell.mode,
        "interval": cell.interval,
        "more": " ".join(
            [name for name in (cell.gc, cell.jit) if name != DEFAULT] + ["plain"] * cell.plain
        ),
    }


def _heat_cell(group: list[CellResult]) -> Json:
    total = figures.of(group)
    worst = max(group, key=lambda one: _WORST[one.verdict])
    asked = group[0].cell.rate_asked
    share = total.rate_hz / asked if total.rate_hz is not None and asked else None
    p99 = figures.worst_p99(group)
    again = f" of {len(group)}" if len(group) > 1 else ""
    bad = sum(1 for one in group if one.verdict == worst.verdict)
    shown = {
        "verdict": f"{bad}{again} {worst.verdict}" if again else worst.verdict,
        "findings": f"{total.findings:,}",
        "rate": "-" if share is None else f"{share:.0%}",
        "traces": "-" if total.ok_share is None else f"{total.ok_share:.0%}",
        "p99": "-" if p99 is None else units.nanoseconds_text(p99),
        "crashes": f"{total.walk_crashes.rate:.2g}" if total.walk_crashes.rate else "0",
    }
    heat = {
        "findings": _log_heat(total.findings, 1, 1e4),
        "rate": None if share is None else 1 - min(1.0, share),
        "traces": None if total.ok_share is None else 1 - total.ok_share,
        "p99": None if p99 is None else _log_heat(p99, 1e3, 1e7),
        "crashes": _log_heat(total.walk_crashes.rate or 0.0, 1e-7, 1e-1),
    }
    return {
        "number": worst.number,
        "verdict": worst.verdict,
        "slow": any(one.slow for one in group),
        "title": f"{worst.cell}: {worst.verdict}. {worst.why or worst.slow}\n"
        f"{total.samples:,} walks; did not return: {total.walk_crashes}; died: {total.cell_crashes}",
        "shown": _json_text(shown),
        "heat": _json_text(heat),
        "text": shown["verdict"],
    }


def _json_text(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))


def _log_heat(value: float, low: float, high: float) -> float:
    if value <= 0:
        return 0.0
    return min(1.0, max(0.05, math.log(value / low) / math.log(high / low)))


def _position(nanoseconds: float) -> float:
    """Percent of the latency axis."""
    power = math.log10(max(1.0, nanoseconds))
    share = (power - _LEAST_POWER) / (_MOST_POWER - _LEAST_POWER)
    return round(100 * min(1.0, max(0.0, share)), 2)


def _latencies(results: Sequence[CellResult]) -> list[Json]:
    """Rate of each cell, latency of each of its walkers."""
    rows = []
    for result in sorted(results, key=lambda one: (one.cell.workload, str(one.cell))):
        rate, asked = achieved(result.stats), result.cell.rate_asked
        least = promised(result.cell, result.stats)
        walkers = []
        for name, one in sorted((result.stats.get("latency_ns") or {}).items()):
            if one.get("count"):
                values = [(q, float(one[q])) for q in QUANTILES]
                walkers.append(
                    {
                        "name": name,
                        "values": [value for _, value in values],
                        "at": [(q, _position(value)) for q, value in values],
                    }
                )
        rows.append(
            {
                "result": result,
                "rate": rate,
                "asked": asked,
                "share": None if rate is None else min(1.0, rate / asked),
                "least": None if least is None else least / asked,
                "walkers": walkers,
                "frames": _frames(result),
            }
        )
    return rows


def _frames(result: CellResult) -> str:
    """Mean depth of its traces."""
    found = (result.stats.get("frames") or {}).values()
    count = sum(int(one["count"]) for one in found)
    return f"{sum(int(one['sum']) for one in found) / count:.0f}" if count else "-"


def _codes(total: Figures) -> list[Json]:
    """Per walker a table: thread states down, codes across, with shares of the state."""
    tables = []
    for walker in sorted({one.walker for one in total.codes}):
        own = {(one.state, one.code): one.count for one in total.codes if one.walker == walker}
        by_code: Counter[str] = Counter()
        by_state: Counter[str] = Counter()
        for (state, code), count in own.items():
            by_code[code] += count
            by_state[state] += count
        codes = sorted(by_code, key=lambda code: (code != OK, -by_code[code]))
        rows = [
            {
                "state": state,
                "count": count,
                "cells": [
                    {
                        "count": own.get((state, code), 0),
                        "share": own.get((state, code), 0) / count if count else 0.0,
                        "ok": code == OK,
                    }
                    for code in codes
                ],
            }
            for state, count in by_state.most_common()
        ]
        tables.append(
            {
                "walker": walker,
                "codes": codes,
                "rows": rows,
                "count": by_state.total(),
                "ok": by_code[OK],
            }
        )
    return tables


def _lost(total: Figures, results: Sequence[CellResult]) -> list[Json]:
    """Causes with their share of all that was due, and the cell that lost most by each."""
    rows = []
    for cause, count in total.lost.items():
        if count:
            most = max(results, key=lambda one, c=cause: _lost_by(one, c))  # type: ignore[misc]
            rows.append(
                {
                    "cause": cause,
                    "count": count,
                    "share": count / total.ticks if total.ticks else 0.0,
                    "most": most,
                    "most_count": _lost_by(most, cause),
                }
            )
    return rows


def _lost_by(result: CellResult, cause: str) -> int:
    return int((result.stats.get("lost") or {}).get(cause) or 0)


def _detail(result: CellResult) -> Json:
    threads = result.stats.get("threads") or {}
    return {
        "number": result.number,
        "name": str(result.cell),
        "verdict": result.verdict,
        "why": result.why or result.slow,
        "folder": result.folder,
        "command": result.command_line,
        "samples": result.samples,
        "seconds": result.seconds,
        "threads": ", ".join(f"{count} {name}" for name, count in threads.items()),
        "work": ", ".join(f"{k} {v:,}" for k, v in (result.work.get("work") or {}).items()),
        "crashes": str(result.crashes),
        "bad": result.verdict in (*FOUND, UNJUDGED),
    }


def _flames(results: Sequence[CellResult], outcome: Outcome) -> Json:
    """Boxes of every cell as flat numbers (depth, name, start, count), names once."""
    names: dict[str, int] = {}
    drawn = {}
    for result in results:
        stacks = flames.read(outcome.out / result.folder / agent.OUT / flames.FOLDED)
        flat: list[int] = []
        for box in flames.boxes(stacks):
            index = names.setdefault(box.name, len(names))
            flat += [box.depth, index, box.start, box.count]
        if flat:
            drawn[result.number] = flat
    return {"names": list(names), "cells": drawn}
