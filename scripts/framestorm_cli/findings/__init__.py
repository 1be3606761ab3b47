"""What native programs write, as records."""
