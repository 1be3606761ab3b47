"""`framestorm step`: every instruction that scenarios execute, walked and judged."""
