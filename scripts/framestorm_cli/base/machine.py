"""The machine a run is made on."""

import os
import platform
from typing import Any

import msgspec
import psutil


class Machine(msgspec.Struct):
    """What machine() says, as a record."""

    cores: int
    memory_mb: int
    kernel: str
    arch: str


def machine() -> dict[str, Any]:
    """The machine a run was made on."""
    return {
        "cores": os.cpu_count() or 1,
        "memory_mb": psutil.virtual_memory().total >> 20,
        "kernel": platform.release(),
        "arch": platform.machine(),
    }
