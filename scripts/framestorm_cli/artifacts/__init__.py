"""`framestorm decode` and `encode`: an artifact's binary and text form."""
