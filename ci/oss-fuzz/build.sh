#!/bin/bash -eu
# Fills $OUT. Runs in OSS-Fuzz's builder, or by hand with its variables: docs/guide/continuous-fuzzing.md.
if [ -d "${SRC:-}/framestorm" ]; then
  checkout=$SRC/framestorm
else
  checkout=$(dirname "$(realpath "$0")")/../..
fi
# In OSS-Fuzz's image the JDK's sources are a clone of their own.
if [ -d "${SRC:-}/jdk" ]; then
  export FRAMESTORM_JDK_SOURCE=${FRAMESTORM_JDK_SOURCE:-$SRC/jdk}
fi
exec "$checkout/scripts/framestorm" oss-fuzz build
