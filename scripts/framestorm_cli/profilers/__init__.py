"""Profilers as they are shipped: which ones are known, where they come from, and how a process gets one."""
