"""Starts the CLI in its virtual environment, which it creates first when the pins ask for it.

Standard library only, and little of it: this runs before every command.
"""

import os
import sys

SCRIPTS = os.path.dirname(os.path.abspath(__file__))
# What every command needs, what those that plot need, and what `framestorm test` needs: nobody has to wait
# for what only others need.
REQUIREMENTS = ["requirements.txt"]
WITH_PLOTS = [*REQUIREMENTS, "requirements-plots.txt"]
WITH_TESTS = [*WITH_PLOTS, "requirements-test.txt"]
PLOTTING = ("compare", "detect", "evaluate")
ROOM = 450 << 20  # bytes the environment needs while it is being created
START = "import sys; sys.path.insert(0, {scripts!r}); from framestorm_cli.main import main; main()"


def fitting(command: str) -> "list[list[str]]":
    """The sets of pins that the command can run with, largest first; the last is installed where none is."""
    if command == "test":
        return [WITH_TESTS]
    return [WITH_TESTS, WITH_PLOTS, *([] if command in PLOTTING else [REQUIREMENTS])]


def fail(message: str) -> None:
    print(f"framestorm: error: {message}", file=sys.stderr)
    sys.exit(2)


def cache_folder() -> str:
    own = os.environ.get("FRAMESTORM_CACHE")
    if own:
        return os.path.abspath(own)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(os.path.abspath(base), "framestorm")


def environment_folder(cache: str, requirements: "list[str]") -> str:
    """One folder per set of pins and interpreter, so that a process in the old one is not disturbed."""
    import zlib

    key = zlib.crc32(sys.version.encode() + sys.base_prefix.encode())
    for name in requirements:
        with open(os.path.join(SCRIPTS, name), "rb") as pins:
            key = zlib.crc32(pins.read(), key)
    return os.path.join(cache, f"venv-{key:08x}")


def install_ensurepip() -> None:
    import shutil
    import subprocess

    prefix = [] if os.geteuid() == 0 else ["sudo"]
    if prefix and shutil.which("sudo") is None or shutil.which("apt-get") is None:
        fail(
            "this Python has no ensurepip and it cannot be installed here (neither root nor sudo, or "
            "no apt-get): install the package python3-venv"
        )
    print("framestorm: installing python3-venv", file=sys.stderr)
    for command in (["update", "-qq"], ["install", "-y", "-qq", "python3-venv"]):
        done = subprocess.run(
            [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", *command],
            stdout=sys.stderr,
            check=False,
        )
        if done.returncode != 0:
            fail(f"apt-get {' '.join(command)} failed (see above): install python3-venv by hand")


def create(folder: str, stamp: str, cache: str, requirements: "list[str]") -> None:
    import fcntl
    import importlib.util
    import shutil
    import subprocess

    free = shutil.disk_usage(cache).free
    if free < ROOM:
        fail(
            f"the cache folder {cache} has {free >> 20} MiB of free disk, the Python environment needs "
            f"{ROOM >> 20} MiB: make room there, or name another folder with FRAMESTORM_CACHE"
        )
    log_path = os.path.join(cache, "venv.log")
    with open(os.path.join(cache, "venv.lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("framestorm: waiting for another framestorm to set up Python", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(stamp):
            return
        if importlib.util.find_spec("ensurepip") is None:
            install_ensurepip()
        print(
            f"framestorm: creating the Python environment (once; log: {log_path})", file=sys.stderr
        )
        shutil.rmtree(folder, ignore_errors=True)
        python = os.path.join(folder, "bin", "python")
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--no-input"]
        pins = [f"--requirement={os.path.join(SCRIPTS, name)}" for name in requirements]
        with open(log_path, "wb") as log:
            for command in (
                [sys.executable, "-m", "venv", folder],
                # Not compiled: most modules of these packages are never imported, the others when they are.
                [*pip, "--no-compile", *pins],
            ):
                done = subprocess.run(command, stdout=log, stderr=log, check=False)
                if done.returncode != 0:
                    break
        if done.returncode != 0:
            with open(log_path, errors="replace") as text:
                sys.stderr.writelines(text.readlines()[-15:])
            fail(
                f"could not create the Python environment {folder} (log: {log_path}); "
                "is a package index reachable (`pip download click`)? Then run the command again"
            )
        with open(stamp, "w") as ready:
            ready.write("ok\n")


def main() -> None:
    if sys.version_info < (3, 11):
        fail(f"Python 3.11 or later is needed, this is {sys.version.split()[0]}")
    cache = cache_folder()
    for requirements in fitting(sys.argv[1] if len(sys.argv) > 1 else ""):
        folder = environment_folder(cache, requirements)
        stamp = os.path.join(folder, "ready")
        if os.path.exists(stamp):
            break
    else:
        try:
            os.makedirs(cache, exist_ok=True)
            create(folder, stamp, cache, requirements)
        except OSError as error:
            fail(
                f"cannot write the cache folder {cache}: {error.strerror} "
                "(FRAMESTORM_CACHE names another)"
            )
    os.environ["FRAMESTORM_CACHE"] = cache
    # For this process by option, since -I does without the variables, and for those that it starts. Compiled
    # modules are kept whatever the environment says: nothing is compiled when the packages are installed.
    compiled = os.path.join(cache, "pycache")
    os.environ["PYTHONPYCACHEPREFIX"] = compiled
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    python = os.path.join(folder, "bin", "python")
    options = ["-I", "-X", f"pycache_prefix={compiled}"]
    os.execv(python, [python, *options, "-c", START.format(scripts=SCRIPTS), *sys.argv[1:]])


main()
