"""What a cell can come to, in one word or three."""

CLEAN = "clean"
FINDINGS = "findings"  # an oracle broke, or a walk's fault was contained
CRASH = "crash"  # of the process
HANG = "hang"
HARMED = "program harmed"  # it fails with walks and not without
UNJUDGED = "could not judge"
VERDICTS = (CLEAN, FINDINGS, CRASH, HANG, HARMED, UNJUDGED)
FOUND = (FINDINGS, CRASH, HANG, HARMED)
