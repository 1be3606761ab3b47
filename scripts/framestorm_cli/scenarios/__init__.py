"""`framestorm scenarios` and `walkers`: what there is to fuzz."""
