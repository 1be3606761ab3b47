"""The profilers that `--profiler NAME` means: released versions, pinned. A row here is all one needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from framestorm_cli.base.jars import Jar

# In options and JVM arguments: the folder that the process writes into. Neither profiler has such a
# pattern of its own (they have %p, %t, %n and %{...}).
OUT = "%o"
INTERVAL = "%i"  # in options of stress: time between two samples of a thread
JVM = "jvm"  # in place of a library: the handler that the JVM's own options install


@dataclass(frozen=True)
class Released(Jar):
    """With the profiler's library for each machine (platform.machine())."""

    libraries: Mapping[str, str]


@dataclass(frozen=True)
class Known:
    """`released` None: it is part of the JVM, and `jvm_args` start it, by the first release that they are
    for. `sampling`: options by which it samples a program by itself, into a JFR file. `jdks`: on which
    releases it walks, the first and the one behind the last."""

    name: str
    what: str
    released: Released | None
    options: str = ""
    sampling: str = ""
    jvm_args: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    jdks: tuple[int, int | None] = (17, None)
    why_not: str = ""  # on others

    @property
    def version(self) -> str:
        return self.released.version if self.released else ""

    def walks_on(self, feature: int) -> bool:
        first, behind = self.jdks
        return first <= feature and (behind is None or feature < behind)

    def jvm_args_on(self, feature: int) -> tuple[str, ...]:
        first = max((first for first in self.jvm_args if first <= feature), default=None)
        return () if first is None else self.jvm_args[first]


def _datadog(artifact: str, version: str, sha256: str, folder: str) -> Released:
    libraries = {
        machine: f"{folder}META-INF/native-libs/{name}/libjavaProfiler.so"
        for machine, name in (("x86_64", "linux-x64"), ("aarch64", "linux-arm64"))
    }
    return Released("com.datadoghq", artifact, version, sha256, libraries)


# What a profiler stores has to be readable, for its count and its traces: of async-profiler by its own
# API, which gives the thread of a trace with `threads` and without a JFR file only; java-profiler has its
# samples in a JFR file, of 15 to 25 bytes for each.
# memlimit: mutated walks give ever new traces, which stay in memory; samples beyond it have none.
# -Xlog:jfr=off: the sampler of JDK 17 and 21 logs an error for each fault that it survives.
# filter= is no filter: java-profiler samples all threads, not only those that tell it to.
def _java_profiler(interval: str) -> str:
    return f"start,cpu={interval},cstack=vm,filter=,jfr,file={OUT}/java-profiler.jfr"


# A process that is ended leaves JFR's repository behind, by default beside those of all other JVMs.
def _jfr(event: str, rate: str) -> tuple[str, ...]:
    return (
        f"-XX:StartFlightRecording=filename={OUT}/jfr.jfr,settings=none,"
        f"+{event}#enabled=true,+{event}#{rate}=10ms",
        f"-XX:FlightRecorderOptions=repository={OUT}/jfr-repository",
    )


KNOWN = (
    Known(
        "async-profiler",
        "its own walker (cstack=vm, its default)",
        Released(
            "tools.profiler",
            "async-profiler",
            "4.6",
            "a5d3d9f4582c2033fa9db518046e73ef97219801f3e7542b82e3e09261ebe493",
            {
                "x86_64": "linux-x64/libasyncProfiler.so",
                "aarch64": "linux-arm64/libasyncProfiler.so",
            },
        ),
        "start,event=ctimer,interval=10ms,cstack=vm,threads,memlimit=512m",
        f"start,event=cpu,interval={INTERVAL},cstack=vm,jfr,file={OUT}/async-profiler.jfr",
    ),
    Known(
        "java-profiler",
        "dd-trace's profiler as ddprof releases it",
        _datadog(
            "ddprof",
            "1.22.0",
            "5fa11cda627a82b5b335a15819336a22231844adb5a662ce3bd50b856be157e3",
            "",
        ),
        _java_profiler("10ms"),
        _java_profiler(INTERVAL),
        jdks=(17, 25),
        why_not="its walker does not start on JDK 25 and later",
    ),
    Known(
        "java-profiler-agent",
        "the newer library (1.52.1) inside dd-trace's agent",
        _datadog(
            "dd-java-agent",
            "1.68.1",
            "86c97c1348277bb024f6185c4fd15a5567c50ab648f88277dffc429adb4bf927",
            "shared/",
        ),
        _java_profiler("10ms"),
        _java_profiler(INTERVAL),
    ),
    Known(
        "jfr",
        "JFR's sampler of the JDK under test: jdk.CPUTimeSample, before 25 jdk.ExecutionSample",
        None,
        jvm_args={
            17: (*_jfr("jdk.ExecutionSample", "period"), "-Xlog:jfr=off"),
            25: _jfr("jdk.CPUTimeSample", "throttle"),
        },
    ),
)
BY_NAME = {one.name: one for one in KNOWN}


def sampling_of(name: str) -> str:
    """Options by which a profiler samples a program by itself, by its name or the file of its library;
    empty when it is not known."""
    file = name.rpartition("/")[2]
    for one in KNOWN:
        libraries = one.released.libraries.values() if one.released is not None else ()
        if one.name == name or any(file == library.rpartition("/")[2] for library in libraries):
            return one.sampling
    return ""
