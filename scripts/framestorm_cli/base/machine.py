"""The machine a run is made on."""

import os
import platform
from typing import Any

import psutil


def machine() -> dict[str, Any]:
    """The machine a run was made on."""
    return {
        "cores": os.cpu_count() or 1,
        "memory_mb": psutil.virtual_memory().total >> 20,
        "kernel": platform.release(),
        "arch": platform.machine(),
    }
