"""The machine a run is made on."""

import os
import platform

import msgspec
import psutil


class Machine(msgspec.Struct):
    """What machine() says, as a record."""

    cores: int
    memory_mb: int
    kernel: str
    arch: str


def machine() -> Machine:
    """The machine a run was made on."""
    memory = psutil.virtual_memory().total >> 20
    return Machine(os.cpu_count() or 1, memory, platform.release(), platform.machine())
