"""What a cell can come to, in one word or three."""

CLEAN = "clean"
SHORT = "short traces"  # no finding, but some end early, whether the walker says so or not
FINDINGS = "findings"  # an oracle broke, or a walk's fault was contained
CRASH = "crash"  # of the process
HANG = "hang"
HARMED = "program harmed"  # it fails with walks and not without
UNJUDGED = "could not judge"
VERDICTS = (CLEAN, SHORT, FINDINGS, CRASH, HANG, HARMED, UNJUDGED)
FOUND = (FINDINGS, CRASH, HANG, HARMED)
