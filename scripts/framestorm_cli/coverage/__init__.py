"""`framestorm coverage`: what inputs reach in an instrumented libjvm."""
