"""The fake java of stress serves here, too."""

from framestorm_cli.stress.conftest import java

__all__ = ["java"]
