"""`framestorm fuzz`: the targets as processes, and what they found."""
