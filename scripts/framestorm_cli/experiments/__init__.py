"""`framestorm compare` and `evaluate`: measurements, their tables and pictures."""
