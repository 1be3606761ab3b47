"""JSON that a command writes, by the types of its records. The schemas in docs/reference are made of them."""

from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from framestorm_cli.base import files

T = TypeVar("T", bound=msgspec.Struct)

Number = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]


def said(description: str, ge: int | None = None) -> Meta:
    """A field's description, and the least that it can be."""
    return Meta(description=description, ge=ge)


FORMAT = said("Changes when a reader of the old form would misread the new one.")


def record(kind: type[T], source: Any, **others: Any) -> T:
    """A record with `others`, and for the rest the attributes of that name of `source`."""
    names = (name for name in kind.__struct_fields__ if name not in others)
    return kind(**{name: getattr(source, name) for name in names}, **others)


def document(kind: type) -> bytes:
    """The schema of a record, as its file holds it."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    text = msgspec.json.encode({**head, **msgspec.json.schema(kind)})
    return msgspec.json.format(text, indent=1) + b"\n"


def write(path: Path, record: Any) -> None:
    """Writes a record. Raises msgspec.ValidationError when it is not what its schema says, and OSError."""
    data = msgspec.json.encode(record)
    msgspec.json.decode(data, type=type(record))
    files.write_bytes(path, msgspec.json.format(data, indent=1) + b"\n")
