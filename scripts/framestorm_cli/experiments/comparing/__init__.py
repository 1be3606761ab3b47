"""`framestorm compare`: what it brings an engine to be told what its inputs reach."""
