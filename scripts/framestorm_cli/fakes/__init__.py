"""Programs that tests start in place of the real ones."""
