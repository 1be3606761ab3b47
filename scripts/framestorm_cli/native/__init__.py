"""The native programs: built, started, watched."""
