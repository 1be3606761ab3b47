"""Replays framestorm's artifacts as tests: one per crash and JDK."""

__version__ = "1.0.0"
