"""JDKs on this machine, and the instrumented ones in the cache."""
