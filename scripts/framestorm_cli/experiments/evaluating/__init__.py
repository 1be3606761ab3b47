"""`framestorm evaluate`: what sampling costs and what it yields, the three ways of seed 002."""

DEFAULT_PROGRAM = "javac"
DEFAULT_INTERVALS = ("1ms", "10ms")
DEFAULT_WALKER = "asgct"
