"""Collectors and compilers by the names that options have."""

from collections.abc import Mapping

DEFAULT = "default"
GCS: Mapping[str, tuple[str, ...]] = {
    DEFAULT: (),
    "serial": ("-XX:+UseSerialGC",),
    "parallel": ("-XX:+UseParallelGC",),
    "g1": ("-XX:+UseG1GC",),
    "z": ("-XX:+UseZGC",),
    "shenandoah": ("-XX:+UseShenandoahGC",),
}
JITS: Mapping[str, tuple[str, ...]] = {
    DEFAULT: (),
    "int": ("-Xint",),
    "c1": ("-XX:TieredStopAtLevel=1",),
    "c2": ("-XX:-TieredCompilation",),
    "comp": ("-Xcomp",),
}
