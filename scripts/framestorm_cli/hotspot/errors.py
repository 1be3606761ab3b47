"""Errors of file systems, in words a person can act on."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from framestorm_cli.base.errors import FramestormError

NO_SPACE = "No space left on device"
_ELSEWHERE = "or name another folder with FRAMESTORM_CACHE"


def disk_full(folder: Path) -> FramestormError:
    return FramestormError(
        f"the disk with the cache folder {folder} is full: make room there (`scripts/framestorm jdk "
        f"clean` removes instrumented JDKs), {_ELSEWHERE}; running the command again resumes"
    )


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turns what goes wrong while writing below `folder` into a FramestormError."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(folder) from error
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise FramestormError(
                f"cannot write the cache folder {folder}: {error.strerror} ({error.filename}): "
                f"make it writable, {_ELSEWHERE}"
            ) from error
        raise
