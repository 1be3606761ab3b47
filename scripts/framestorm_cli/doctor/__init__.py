"""`framestorm doctor`: what the machine has and lacks."""
