"""`framestorm jdk`: build, list and remove instrumented JDKs."""
