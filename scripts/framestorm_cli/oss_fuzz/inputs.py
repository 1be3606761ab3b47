"""What goes with a target: seed corpus, dictionary, options."""

import zipfile
from collections.abc import Callable
from pathlib import Path

from framestorm_cli.base import paths
from framestorm_cli.base.errors import FramestormError

Encode = Callable[[bytes], bytes]  # text form to binary form

OPTIONS = """\
[libfuzzer]
max_len = 4096
len_control = 0
"""
_HEADER = 4  # bytes before the first mutation (harness/input/binary.h)
_ONE_MUTATION = 1 << 2  # in the last of them, when nothing else is there
_EPOCH = (1980, 1, 1, 0, 0, 0)


def texts_of(target: str) -> dict[str, str]:
    """The seeds of a target: name to text form. Raises FramestormError when it has none."""
    found = {
        path.stem: path.read_text(encoding="utf-8")
        for path in sorted((paths.SEEDS / target).glob("*.txt"))
    }
    if not found:
        raise FramestormError(f"{paths.SEEDS / target} has no seeds: is the checkout complete?")
    return found


def write_seed_corpus(texts: dict[str, str], archive: Path, encode: Encode) -> int:
    """<target>_seed_corpus.zip: binary forms, the same bytes for the same seeds. Returns how many."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as seeds:
        for name, text in texts.items():
            seeds.writestr(zipfile.ZipInfo(name, _EPOCH), encode(text.encode()))
    return len(texts)


def tokens_of(texts: dict[str, str], encode: Encode) -> dict[bytes, str]:
    """The mutations that occur in seeds, as they stand in the binary form, and their text: what a
    mutator that knows only bytes can put together."""
    lines = {line.strip() for text in texts.values() for line in text.splitlines()}
    tokens: dict[bytes, str] = {}
    for line in sorted(lines):
        # Calls of a queue are refused without their walker, and are no mutation.
        if not line or line.startswith(("#", "framestorm-input", "scenario", "queue")):
            continue
        encoded = encode(f"framestorm-input 1\nscenario c1\n{line}\n".encode())
        if len(encoded) > _HEADER and encoded[_HEADER - 1] == _ONE_MUTATION:
            tokens.setdefault(encoded[_HEADER:], line)
    return tokens


def write_dictionary(tokens: dict[bytes, str], dictionary: Path) -> None:
    """In the form that libFuzzer and AFL++ read."""
    lines = []
    for number, (token, text) in enumerate(tokens.items()):
        escaped = "".join(f"\\x{byte:02x}" for byte in token)
        lines += [f"# {text}", f'mutation_{number}="{escaped}"']
    dictionary.write_text("\n".join(lines) + "\n", encoding="utf-8")
