"""Reports of AddressSanitizer, UndefinedBehaviorSanitizer and their kin in log files."""

import re
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.binaries.normalise import normalise

_ASAN = re.compile(
    r"^==\d+==\s?(?:ERROR|WARNING): (?P<tool>\w+Sanitizer): (?P<what>[\w-]+)(?P<rest>.*)$"
)
_UBSAN = re.compile(r"^(?P<place>\S+?:\d+(?::\d+)?): runtime error: (?P<message>.*)$")
_FRAME = re.compile(
    r"^\s*#(?P<index>\d+) 0x[0-9a-f]+ +(?:in (?P<function>.+?) )?(?P<place>\(\S+?\+0x[0-9a-f]+\).*|\S+)$"
)
_ACCESS = re.compile(r"^(READ|WRITE) of size (\d+) at (0x[0-9a-f]+)")

# UBSan has no short names in its messages; these are the names of its checks.
_UBSAN_CHECKS = (
    (re.compile(r"signed integer overflow"), "signed-integer-overflow"),
    (re.compile(r"shift exponent|left shift of"), "shift"),
    (re.compile(r"null pointer"), "null"),
    (re.compile(r"misaligned address"), "alignment"),
    (re.compile(r"out of bounds"), "bounds"),
    (re.compile(r"division by zero"), "integer-divide-by-zero"),
    (re.compile(r"not a valid value for type 'bool'"), "bool"),
    (re.compile(r"not a valid value for type"), "enum"),
    (re.compile(r"outside the range of representable"), "float-cast-overflow"),
    (re.compile(r"applying (?:non-)?zero offset|pointer index expression"), "pointer-overflow"),
    (re.compile(r"which does not point to an object"), "vptr"),
    (re.compile(r"incorrect function type"), "function"),
)


@dataclass(frozen=True)
class SanitizerReport:
    path: Path
    tool: str  # "AddressSanitizer"
    what: str  # "heap-buffer-overflow", or the UBSan check
    message: str
    frames: tuple[str, ...]  # normalised names, innermost first; the file where there is no symbol
    lines: tuple[str, ...]  # the stack as printed


def _check(message: str) -> str:
    return next((name for pattern, name in _UBSAN_CHECKS if pattern.search(message)), "undefined")


def has_report(text: str) -> bool:
    return any(_ASAN.match(line) or _UBSAN.match(line) for line in text.splitlines())


def parse(path: Path) -> list[SanitizerReport]:
    """Every report of a log. A report's stack is the first one after its head."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    reports = []
    for index, line in enumerate(lines):
        asan, ubsan = _ASAN.match(line), _UBSAN.match(line)
        if asan is None and ubsan is None:
            continue
        frames, printed, access = _stack_after(lines[index + 1 :])
        if asan is not None:
            message = f"{asan['what']}{asan['rest']}".split(" at pc ")[0]
            message += f" ({access})" if access else ""
            report = SanitizerReport(path, asan["tool"], asan["what"], message, frames, printed)
        else:
            assert ubsan is not None
            message = f"{ubsan['place']}: {ubsan['message']}"
            if (
                not frames
            ):  # print_stacktrace=0: the source file is all there is to tell causes apart
                frames = (ubsan["place"].rsplit("/", 1)[-1].split(":")[0],)
            report = SanitizerReport(
                path,
                "UndefinedBehaviorSanitizer",
                _check(ubsan["message"]),
                message,
                frames,
                printed,
            )
        reports.append(report)
    return reports


def _stack_after(lines: list[str]) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    names: list[str] = []
    printed: list[str] = []
    access = ""
    for line in lines:
        if _ASAN.match(line) or _UBSAN.match(line):
            break
        if (accessed := _ACCESS.match(line)) is not None:
            access = f"{accessed[1].lower()} of {accessed[2]} bytes"
        frame = _FRAME.match(line)
        if frame is not None:
            function = frame["function"]
            module = frame["place"].strip("()").split("+")[0].rsplit("/", 1)[-1]
            names.append(normalise(function) if function else f"[{module}]")
            printed.append(line.strip())
        elif names:
            break
    return tuple(names), tuple(printed), access
