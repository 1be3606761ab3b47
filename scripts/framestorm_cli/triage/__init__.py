"""From findings, hs_err files and sanitizer logs to buckets with an explanation."""
