"""Reports for other programs: JUnit XML, SARIF, and the list of known buckets. Any command's."""
