"""`framestorm stress`: real programs under the walkers, cell by cell."""
