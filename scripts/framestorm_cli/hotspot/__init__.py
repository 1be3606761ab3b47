"""Instrumented JDKs made from HotSpot sources."""
