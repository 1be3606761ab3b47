"""`framestorm coverage` and `framestorm corpus`: what inputs reach in an instrumented libjvm."""
