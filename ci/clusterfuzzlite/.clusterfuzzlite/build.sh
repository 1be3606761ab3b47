#!/bin/bash -eu
# The JDK under test is the repository this folder is in: $SRC/jdk.
exec "$SRC/framestorm/ci/oss-fuzz/build.sh"
