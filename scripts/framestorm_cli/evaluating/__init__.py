"""`framestorm evaluate`: what sampling costs and what it yields, the three ways of seed 002."""

DEFAULT_PROGRAM = "javac"
