"""A finding, from what a native program wrote to what a summary says of it.

findings.jsonl ──read──> Finding ──triage attaches──> signature, frames
                            └──with others of its cause──> Bucket (triage/buckets.py)
"""

from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from framestorm_cli.base import files
from framestorm_cli.binaries.symbols import Frame

# How far a state is from one that a thread can have (harness/input/state.h), in the order in which
# findings are listed.
STATES = ("real", "torn", "corrupt")


def state_rank(state: str) -> int:
    """Where a state stands in that order; behind all others when it is not known."""
    return STATES.index(state) if state in STATES else len(STATES)


def thread_state(name: str) -> str:
    """HotSpot's `_thread_in_Java` is `in Java`."""
    return name.removeprefix("_thread_").replace("_trans", " (transition)").replace("_", " ")


class Signature(msgspec.Struct, frozen=True, order=True, omit_defaults=True):
    """What makes two findings the same. `frames`: normalised function names, innermost first, at most
    triage.signature.TOP_FRAMES. Without a walker's stack one entry: `victim <scenario>`; none of a
    contract finding, which has what the walker `did`, and the walker."""

    kind: str
    clause: str
    frames: tuple[str, ...]
    did: Annotated[
        str, Meta(description="What the walker did to a clause, `*` for what differs.")
    ] = ""
    walker: Annotated[str, Meta(description="The walker that did it.")] = ""

    @staticmethod
    def from_json(data: dict[str, Any]) -> "Signature":
        """Raises ValueError when a field is missing or of another type."""
        try:
            return msgspec.convert({"clause": "", **data}, Signature)
        except (msgspec.ValidationError, TypeError) as error:
            raise ValueError(f"a signature has kind, clause and frames: {error}") from error

    def __str__(self) -> str:
        head = f"{self.kind} {self.clause}" if self.clause else self.kind
        head += f" by {self.walker}" if self.walker else ""
        head += f": {self.did}" if self.did else ""
        return f"{head} in {' < '.join(self.frames)}" if self.frames else head


class Code(msgspec.Struct):
    """A place that code has by name: `nmethod "C1.spin" tier 1 entry`."""

    kind: str
    name: str
    tier: int = 0
    anchor: str = "entry"


class Value(msgspec.Struct):
    """A symbolic value (harness/input/json_form.h); `text` as the text form has it."""

    text: str
    kind: str
    delta: int = 0
    index: int = 0
    raw: int = 0
    code: Code | None = None
    thread_state: str = ""  # of a raw one in the field `state`


class Mutation(msgspec.Struct):
    """`kind`: register, stack or thread; `place`: "pc", "sp + 3", "last-java-sp"."""

    kind: str
    place: str
    value: Value


class Input(msgspec.Struct):
    """What was executed. `call` has what differs from the usual arguments."""

    scenario: str
    mode: str = "same-thread"
    walker: str = "asgct"
    call: dict[str, str | int] = {}
    mutations: list[Mutation] = []
    iterator_calls: list[str] = []
    queue_calls: list[str] = []


class Finding(msgspec.Struct, tag_field="type", tag="finding"):
    """One recorded finding of one process, or one crash report. Addresses are as written ("0x..")."""

    key: str = ""
    kind: str = ""
    t: float = 0.0  # seconds since its process's first walk
    clause: str = ""
    detail: str = ""
    detail_class: str = ""  # of a broken contract: what the walker did, the same for all victims
    oracle: str = ""  # that reported it; empty: none, as of a process that died
    mutant: int = 0  # of libjvm, that it killed; 0: none was in force
    victim: str = ""
    state: str = ""  # of STATES; empty when it was not written down
    artifact: Path | None = None  # absolute
    text: str = ""
    input: Input | None = None  # None: not known
    signal: str = ""
    si_code: int = 0
    address: str = ""
    access: str = ""  # "read", "write"; empty when it was not written down
    pc: str = ""
    registers: dict[str, str] = {}
    stack: tuple[str, ...] = ()
    code: str = ""
    code_start: str = ""
    code_pc_offset: int = 0
    function: str = ""
    locks_held: int = 0
    context: dict[str, str] = {}
    fault_place: Value | None = None
    trace: list[dict[str, Any]] = []

    # Attached when it is read.
    modules: dict[str, str] = {}
    signature: Signature = Signature("", "", ())
    frames: list[Frame] = []
    count: int = 1
    rechecks: int = 0
    rechecks_hit: int = 0
    victims: dict[str, int] = {}  # how often its key was seen with which
    target: str = ""
    seed: int | None = None

    @property
    def scenario(self) -> str:
        return self.input.scenario if self.input else self.victim

    @property
    def walker(self) -> str:
        return self.input.walker if self.input else ""

    @property
    def robustness(self) -> float:
        """Share of re-executions at other halt points that showed it again; the fewer there were, the
        nearer to a half."""
        return (self.rechecks_hit + 1) / (self.rechecks + 2)

    @property
    def mutations(self) -> int:
        """What the input changes; each has to fall into place again in another process."""
        return len(self.input.mutations) + len(self.input.call) if self.input else 0


class Count(msgspec.Struct, tag_field="type", tag="count"):
    """How often a key was seen, and came back at other halt points."""

    key: str
    count: int = 0
    rechecks: int = 0
    rechecks_hit: int = 0
    victims: dict[str, int] = {}


def read_line(line: bytes, folder: Path) -> Finding | Count:
    """A line of a findings.jsonl in `folder`. Raises msgspec.MsgspecError.

    What older processes wrote has the input's text form alone: of that the scenario is read.
    """
    found: Finding | Count = files.decode(line, Finding | Count)  # type: ignore[arg-type]
    if isinstance(found, Finding):
        if found.artifact is not None:
            found.artifact = (folder / found.artifact).resolve() if found.artifact.name else None
        if found.input is None:
            fields = dict(one.partition(" ")[::2] for one in found.text.splitlines())
            found.victim = found.victim or fields.get("scenario", "")
    return found
