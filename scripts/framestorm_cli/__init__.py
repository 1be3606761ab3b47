"""The Python side of framestorm: set-up, driving the native programs, triage and reports."""
