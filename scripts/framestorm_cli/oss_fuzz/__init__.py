"""Fuzz targets that somebody else's infrastructure builds and runs: OSS-Fuzz, ClusterFuzzLite."""
