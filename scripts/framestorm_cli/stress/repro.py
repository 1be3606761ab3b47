"""repro.sh: runs a bucket's cell again by its command line alone, with nothing of framestorm's CLI."""

import re
import shlex
from pathlib import Path

from framestorm_cli.stress import agent
from framestorm_cli.stress.cell_result import CellResult
from framestorm_cli.stress.plan import Plan
from framestorm_cli.triage.buckets import Bucket

_OUT = "framestorm-repro-out"
START_SECONDS = 10.0  # that a JVM may take before it is sampled
_SAMPLES = ("-agentpath:", "-XX:StartFlightRecording", "-XX:FlightRecorderOptions")
# Where the cell wrote. JFR's settings are read only.
_FOLDER = re.compile(
    r'(?<=[=,]out=)[^,]+|(?<=,filename=")[^"]*(?=/)|(?<=[:,]repository=")[^"]*(?=/)'
)


def write(path: Path, home: CellResult, plan: Plan, bucket: Bucket) -> None:
    """Raises OSError."""
    java, *arguments = map(_shell_word, home.command)
    # By env: not the shell's and timeout's, which would preload, too.
    command = " ".join([*(["env"] if home.settings else []), *home.settings, '"$java"', *arguments])
    seconds = plan.limit if home.own_clock else START_SECONDS + (plan.seconds or 0.0)
    fine = "0|143" if home.own_clock else "0|143|124"  # 124: the time it was given was over
    lines = [
        "#!/bin/sh",
        f"# {bucket.signature}".replace("\n", " "),
        f"# cell: {home.cell}, seed {home.seed}; JDK {plan.jdk_version}, libjvm {plan.libjvm_build_id}",
        f"# Runs it until it comes back, RUNS times at most; what it leaves is in ./{_OUT}.",
        "# Exit code 0: it died, hung, failed or has findings, 1: it did not.",
        "set -u",
        f"out=$PWD/{_OUT}",
        f"java=${{JAVA:-{java}}}",
        "run=0",
        'while [ "$run" -lt "${RUNS:-5}" ]; do',
        "  run=$((run + 1))",
        '  rm -rf "$out"',
        f'  mkdir -p "$out"/{agent.OUT}',
        f'  (cd "$out" && exec timeout -k 10 {seconds:.0f} \\',
        f"    {command})",
        "  code=$?",
        f'  case "$code" in {fine}) ended_well=yes ;; *) ended_well= ;; esac',
        f'  if [ -s "$out/{agent.OUT}/findings.jsonl" ] || ls "$out"/hs_err*.log >/dev/null 2>&1 ||',
        '    [ -z "$ended_well" ]; then',
        '    echo "run $run: exit $code, see $out"',
        "    exit 0",
        "  fi",
        "done",
        'echo "nothing in $run runs"',
        "exit 1",
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    path.chmod(0o755)


def _shell_word(word: str) -> str:
    """Quoted; what samples is to write into the script's own folder."""
    if not word.startswith(_SAMPLES):
        return shlex.quote(word)
    parts = _FOLDER.split(word)
    return f'"$out"/{agent.OUT}'.join(shlex.quote(part) if part else "" for part in parts)
