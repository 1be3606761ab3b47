"""`framestorm corpus`: seeds, what engines found, crashes that are tests."""
