"""`framestorm bench`: the fuzz loop against bare walker calls."""
