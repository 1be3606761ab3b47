"""`framestorm gate`: whether a change of a walker, or of the JDK under it, may be merged."""
