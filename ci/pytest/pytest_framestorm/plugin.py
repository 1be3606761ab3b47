"""Collects framestorm's artifacts (*.bin) and replays each in fresh JVMs of the JDKs asked for.

Nothing is collected without --framestorm-jdk (or framestorm_jdk in pytest's configuration).
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_framestorm import checkout
from pytest_framestorm.checkout import CallFailedError

_DEFAULT_WALKER = "asgct"  # what a text form without a `walker` line means
_WALKER = re.compile(r"^walker (\S+)", re.MULTILINE)
_SAID = {
    "open": "open, and reproduced",
    "fixed": "fixed, and still gone",
    "unaffected": "unaffected, and still so",
    "unknown": "without expectations, and nothing found",
}
_KEY = pytest.StashKey["Settings"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("framestorm", "framestorm: crashes of JVM stack walkers")
    group.addoption(
        "--framestorm-jdk",
        action="append",
        metavar="PATH",
        help="JDK to replay artifacts on: its home, or instrumented[:VARIANT]; repeatable",
    )
    group.addoption(
        "--framestorm-timeout",
        type=float,
        metavar="SECONDS",
        help="how long one JVM may take before it is killed and reported as hung (default: 60)",
    )
    group.addoption(
        "--framestorm-jvm-arg",
        action="append",
        metavar="ARG",
        help="argument for the JVMs; repeatable",
    )
    parser.addini("framestorm_jdk", "JDKs to replay artifacts on", type="args", default=[])
    parser.addini("framestorm_timeout", "seconds one JVM may take", default="60")


class Settings:
    """Of one pytest process. Workers of pytest-xdist get the JDKs from the process that started them,
    which has set everything up."""

    def __init__(self, config: pytest.Config) -> None:
        self.asked: list[str] = config.getoption("framestorm_jdk") or config.getini(
            "framestorm_jdk"
        )
        own = config.getoption("framestorm_timeout")
        self.limit = float(own if own is not None else config.getini("framestorm_timeout"))
        self.jvm_args: list[str] = config.getoption("framestorm_jvm_arg") or []
        if not self.asked or config.option.help:
            return
        self.checkout = checkout.find()
        given = getattr(config, "workerinput", {}).get("framestorm_jdks")
        self.jdks: list[dict[str, str]] = (
            json.loads(given) if given else checkout.identify(self.checkout, self.asked)
        )
        labels = [jdk["label"] for jdk in self.jdks]
        for jdk in self.jdks:  # two builds of one release are told apart by their versions
            same = labels.count(jdk["label"]) > 1
            jdk["id"] = f"jdk{jdk['label']}" + (f"-{jdk['version']}" if same else "")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "framestorm: an artifact of framestorm, replayed in fresh JVMs"
    )
    settings = Settings(config)
    config.stash[_KEY] = settings
    if settings.asked and not config.option.help:
        config.pluginmanager.register(Tally(settings), "framestorm-tally")
        for label in sorted({jdk["label"] for jdk in settings.jdks}):
            config.addinivalue_line("markers", f"jdk{label}: replayed on JDK {label}")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """pytest-xdist: what a worker need not find out again."""
    settings = node.config.stash[_KEY]
    if settings.asked:
        node.workerinput["framestorm_jdks"] = json.dumps(settings.jdks)


def pytest_report_header(config: pytest.Config) -> "list[str]":
    settings = config.stash[_KEY]
    if not settings.asked:
        return []
    return [f"framestorm: {settings.checkout}"] + [
        f"framestorm JDK: {jdk['version']} ({jdk['home']}), expectations of {jdk['label']}"
        for jdk in settings.jdks
    ]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "ArtifactFile | None":
    if file_path.suffix != ".bin" or not parent.config.stash[_KEY].asked:
        return None
    return ArtifactFile.from_parent(parent, path=file_path)


class ArtifactFile(pytest.File):
    """One artifact: a test per JDK."""

    def collect(self) -> "Iterable[ReplayItem]":
        settings = self.config.stash[_KEY]
        try:
            text = _text_of(self.path, settings)
        except CallFailedError as error:
            raise self.CollectError(str(error)) from error
        matched = _WALKER.search(text)
        walker = matched[1] if matched else _DEFAULT_WALKER
        self.config.addinivalue_line("markers", f"{walker}: an artifact for the walker {walker}")
        for jdk in settings.jdks:
            item = ReplayItem.from_parent(self, name=jdk["id"], jdk=jdk)
            for marker in ("framestorm", walker, f"jdk{jdk['label']}"):
                item.add_marker(marker)
            yield item


def _text_of(artifact: Path, settings: Settings) -> str:
    """The text form that is kept beside most artifacts, else a decoded one."""
    beside = artifact.with_suffix(".txt")
    if beside.is_file():
        text = beside.read_text(encoding="utf-8", errors="replace")
        if text.startswith("framestorm-input"):
            return text
    return checkout.decode(settings.checkout, artifact)


class NotAsExpectedError(Exception):
    """Carries the verdict to the report."""

    def __init__(self, verdict: "dict[str, Any]") -> None:
        super().__init__(verdict["problem"])
        self.verdict = verdict


class ReplayItem(pytest.Item):
    """One artifact on one JDK."""

    def __init__(self, *, jdk: "dict[str, str]", **more: Any) -> None:
        super().__init__(**more)
        self.jdk = jdk

    def runtest(self) -> None:
        settings = self.config.stash[_KEY]
        verdict = checkout.judge(
            settings.checkout, self.path, self.jdk["home"], settings.limit, settings.jvm_args
        )
        if verdict is None:
            pytest.skip(f"nothing is expected of it on JDK {self.jdk['label']}")
        self.user_properties += [
            ("framestorm_status", verdict["status"]),
            ("framestorm_signature", verdict["signature"] or ""),
            ("framestorm_reproduced", f"{verdict['reproduced']} of {verdict['tries']}"),
        ]
        if not verdict["holds"]:
            raise NotAsExpectedError(verdict)

    def repr_failure(self, excinfo: "pytest.ExceptionInfo[BaseException]", *_: Any) -> str:
        error = excinfo.value
        if isinstance(error, NotAsExpectedError):
            return "\n".join(_failure(error.verdict, self.path))
        if isinstance(error, CallFailedError):
            return f"could not replay {self.path}:\n{error}"
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> "tuple[Path, int | None, str]":
        return self.path, None, f"{self.path.parent.name}/{self.path.stem} on {self.name}"


def _failure(verdict: "dict[str, Any]", artifact: Path) -> Iterator[str]:
    yield verdict["problem"]
    if verdict["hung"]:
        yield f"HUNG: {verdict['hung']} of {verdict['tries']} JVMs did not end and were killed"
    yield ""
    yield f"input ({artifact}):"
    yield from (f"  {line}" for line in verdict["input"].splitlines())
    case = verdict["case"]
    if case is not None:
        yield ""
        yield f"explanation: {case['explanation']}"
        yield f"signature: {case['signature']}"
        for name in ("fault", "detail"):
            if case[name]:
                yield f"{name}: {case[name]}"
        yield "walker stack:"
        yield from (f"  #{index:<2} {frame}" for index, frame in enumerate(case["stack"]))
    yield ""
    yield f"replay: scripts/framestorm replay {artifact} --jdk {verdict['jdk']['home']}"


class Tally:
    """What was replayed, in the process that reports (of pytest-xdist's, the one that started the others)."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._replayed = 0
        self._without = 0  # expectations for the JDK

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if "framestorm" in report.keywords and report.when == "call":
            if report.skipped:
                self._without += 1
            else:
                self._replayed += 1

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Artifacts that were collected and none of them replayed: nothing was tested."""
        if self._did_nothing and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        counts: dict[str, int] = {}
        for report in terminalreporter.getreports("passed"):
            status = dict(report.user_properties).get("framestorm_status")
            if status:
                counts[status] = counts.get(status, 0) + 1
        if counts:
            terminalreporter.section("framestorm")
            for status, count in counts.items():
                terminalreporter.line(f"{count} {_SAID.get(status, status)}")
        if self._did_nothing:
            labels = ", ".join(jdk["label"] for jdk in self._settings.jdks)
            terminalreporter.line(
                f"framestorm: nothing is expected of any of the {self._without} artifacts on {labels}: "
                "nothing was tested (exit code 5)"
            )

    @property
    def _did_nothing(self) -> bool:
        return self._without > 0 and self._replayed == 0
