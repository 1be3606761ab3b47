"""`framestorm replay` and `minimize`: artifacts in fresh JVMs."""
