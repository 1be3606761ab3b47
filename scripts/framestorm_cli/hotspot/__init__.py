"""`framestorm jdk`: instrumented JDKs made from HotSpot sources."""
