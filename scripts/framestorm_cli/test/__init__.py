"""`framestorm test`: every test and check of the checkout."""
