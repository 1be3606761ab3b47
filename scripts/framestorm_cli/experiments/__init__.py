"""`framestorm compare` and `evaluate`: measurements, their tables and pictures."""

# Of `evaluate`.
DEFAULT_PROGRAM = "javac"
DEFAULT_INTERVALS = ("1ms", "10ms")
DEFAULT_WALKER = "asgct"
