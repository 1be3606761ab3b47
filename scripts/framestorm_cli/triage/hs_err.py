"""HotSpot's hs_err_pid*.log, JDK 17 to 25 (older ones as far as they are the same)."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from framestorm_cli.binaries.normalise import normalise
from framestorm_cli.triage.signature import ENTRY_POINT

_HEAD = "# A fatal error has been detected by the Java Runtime Environment"
_SIGNAL = re.compile(r"^#\s+(SIG[A-Z]+) \(0x[0-9a-f]+\) at pc=(0x[0-9a-f]+)", re.MULTILINE)
_INTERNAL = re.compile(r"^#\s+Internal Error \(([^)]*)\)", re.MULTILINE)
_MESSAGE = re.compile(r"^#\s+((?:guarantee|assert|fatal error|Error:?)\b.*)$", re.MULTILINE)
_OUT_OF_MEMORY = re.compile(r"^# There is insufficient memory", re.MULTILINE)
_JRE = re.compile(r"^# JRE version: (.*)$", re.MULTILINE)
_PROBLEMATIC = re.compile(r"^# Problematic frame:\s*\n# (.*)$", re.MULTILINE)
_SIGINFO = re.compile(r"^siginfo: (.*)$", re.MULTILINE)
_ADDRESS = re.compile(r"si_addr: (0x[0-9a-f]+)")
_CODE = re.compile(r"si_code: (-?\d+)")
_THREAD = re.compile(r"^Current thread[^:]*:\s*(.*)$", re.MULTILINE)
_REGISTER = re.compile(
    r"\b(R\d+|R[A-DSI][XIP]|RBP|RSP|RIP|EFLAGS|ERR|X\d+|SP|PC|LR)\s*=\s*(0x[0-9a-fA-F]+)"
)
_FRAME = re.compile(
    r"^(?P<type>[VCjJAv])\s+(?:\d+%?\s+)?(?:(?:c1|c2|jvmci)\s+)?(?:\[(?P<module>[^\]+]+)\+(?P<offset>0x[0-9a-f]+)\]\s*)?(?P<what>.*)$"
)
# Of stubs, hidden classes (`A$$Lambda+0x00..12.f`, `LambdaForm$MH/0x00..12.g`).
_ADDRESS_IN_NAME = re.compile(r"[+/.\s]0x[0-9a-f]+")
_INTO = re.compile(r"^(?P<name>.+?)\+0x[0-9a-f]+(?:\s+\(.*\))?$")


@dataclass(frozen=True)
class NativeFrame:
    """One line of the native frames. `name` is normalised; the module where there is no symbol."""

    type: str  # V: libjvm, C: native, j: interpreted, J: compiled, v: stub
    module: str
    place: str  # "libjvm.so+0x1234", or ""
    name: str
    line: str


@dataclass(frozen=True)
class HsErr:
    """What a crash report says. Missing parts are empty: a report can be cut off anywhere."""

    path: Path
    signal: str  # "SIGSEGV"; empty for an internal error
    error: str  # "guarantee(...) failed", "Out of memory", ...; empty for a signal
    pc: str
    address: str
    si_code: int
    jre: str
    problematic_frame: str
    thread: str
    registers: dict[str, str] = field(default_factory=dict)
    frames: tuple[NativeFrame, ...] = ()

    @property
    def names(self) -> list[str]:
        """Native frames by name; Java frames are the victim's, and only taken when there is no other."""
        native = [frame.name for frame in self.frames if frame.type in "VC"]
        return native or [frame.name for frame in self.frames]

    @property
    def in_walk(self) -> bool:
        """Whether a stack walker was on the crashing stack."""
        return any(ENTRY_POINT.fullmatch(frame.name) for frame in self.frames)


def is_hs_err(text: str) -> bool:
    return _HEAD in text[:4096]


def _first(pattern: "re.Pattern[str]", text: str) -> str:
    matched = pattern.search(text)
    return matched[1].strip() if matched else ""


def _section(text: str, title: str) -> str:
    """Lines from the one that starts with `title` up to the next empty one."""
    start = re.search(rf"^{re.escape(title)}.*\n", text, re.MULTILINE)
    if start is None:
        return ""
    return text[start.end() :].split("\n\n", 1)[0]


def parse_frame(line: str) -> NativeFrame | None:
    """`V  [libjvm.so+0x6c2016]  AsyncGetCallTrace+0x76`; None for a line that is no frame."""
    matched = _FRAME.match(line.strip())
    if matched is None:
        return None
    module, what = matched["module"] or "", matched["what"].strip()
    into = _INTO.match(what)
    if into is not None:
        what = into["name"]
    if matched["type"] in "VC":
        named = bool(what) and not what.startswith("0x")
        name = normalise(what) if named else f"[{module or 'unknown code'}]"
    else:
        name = _ADDRESS_IN_NAME.sub("", what.split(" @ ")[0].split("(")[0]).strip() or "[Java code]"
    place = f"{module}+{matched['offset']}" if module else ""
    return NativeFrame(matched["type"], module, place, name, line.strip())


def parse(path: Path) -> HsErr:
    """Reads a report. Raises ValueError when the file is not one."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if not is_hs_err(text):
        raise ValueError(f"{path} is not an hs_err file")
    signal = _SIGNAL.search(text)
    error = ""
    if _OUT_OF_MEMORY.search(text):
        error = "out of memory"
    elif (internal := _INTERNAL.search(text)) is not None:
        message = _first(_MESSAGE, text)
        place = internal[1].split(",")[0].strip()
        error = f"{message} ({place})" if message else f"internal error ({place})"
    siginfo = _first(_SIGINFO, text)
    native = _section(text, "Native frames:")
    frames = tuple(f for f in map(parse_frame, native.splitlines()) if f is not None)
    problematic = _first(_PROBLEMATIC, text)
    if not frames and problematic and (only := parse_frame(problematic)) is not None:
        frames = (only,)
    code = _CODE.search(siginfo)
    return HsErr(
        path=path,
        signal=signal[1] if signal else "",
        error=error,
        pc=signal[2] if signal else "",
        address=_first(_ADDRESS, siginfo),
        si_code=int(code[1]) if code else 0,
        jre=_first(_JRE, text),
        problematic_frame=problematic,
        thread=_first(_THREAD, text),
        registers={
            name.lower(): value.lower()
            for name, value in _REGISTER.findall(_section(text, "Registers:"))
        },
        frames=frames,
    )
