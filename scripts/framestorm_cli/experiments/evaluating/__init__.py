"""`framestorm evaluate`: what sampling costs and yields, as in the separate-thread experiment."""

DEFAULT_PROGRAM = "javac"
DEFAULT_INTERVALS = ("1ms", "10ms")
DEFAULT_WALKER = "asgct"
