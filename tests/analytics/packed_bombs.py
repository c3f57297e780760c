"""Parquet files that hold more than they weigh, and files whose headers lie."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.analytics.builders import SCHEMAS

MAGIC = b"PAR1"
INCIDENTS = SCHEMAS["incidents"]


def pack(rows: Sequence[Mapping[str, Any]], **options: Any) -> bytes:
    """Return incidents as a Parquet file, packed with Snappy unless `options` say otherwise."""
    return pack_table(pa.Table.from_pylist(list(rows), INCIDENTS), **options)


def pack_table(table: pa.Table, **options: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


def pack_copies(row: Mapping[str, Any], number_of_rows: int) -> bytes:
    """Return a file of equal rows. Dictionaries and run lengths make it tiny."""
    columns: dict[str, pa.Array] = {}
    positions = pa.repeat(pa.scalar(0, pa.int32()), number_of_rows)
    for field in INCIDENTS:
        if pa.types.is_list(field.type):
            continue
        value = pa.scalar(row[field.name], field.type)
        if value.is_valid and pa.types.is_string(field.type):
            texts = pa.array([value.as_py()], field.type)
            columns[field.name] = pa.DictionaryArray.from_arrays(positions, texts)
        else:
            columns[field.name] = pa.repeat(value, number_of_rows)
    return pack_table(pa.table(columns))


@dataclass(frozen=True)
class Raw:
    """A field with a type of its own, already encoded."""

    type_number: int
    content: bytes


Value = int | bytes | Raw | list["Value"] | dict[int, "Value"]
_INT64, _BINARY, _LIST, _STRUCT = 6, 8, 9, 12


def encode_number(number: int) -> bytes:
    """Return a number of variable length, as Thrift's compact protocol has it."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def encode_struct(fields: Mapping[int, Value]) -> bytes:
    """Return a struct of Thrift's compact protocol. Numbers are written with 64 bits."""
    return b"".join(encode_field(number, value) for number, value in fields.items()) + b"\0"


def encode_field(number: int, value: Value) -> bytes:
    type_number, content = _encode_value(value)
    return bytes([type_number]) + encode_number(number << 1) + content


def _encode_value(value: Value) -> tuple[int, bytes]:
    if isinstance(value, Raw):
        return value.type_number, value.content
    if isinstance(value, bytes):
        return _BINARY, encode_number(len(value)) + value
    if isinstance(value, dict):
        return _STRUCT, encode_struct(value)
    if isinstance(value, list):
        items = [_encode_value(item) for item in value]
        item_type = items[0][0] if items else _STRUCT
        content = b"".join(content for _, content in items)
        return _LIST, bytes([0xF0 | item_type]) + encode_number(len(items)) + content
    return _INT64, encode_number(value << 1 if value >= 0 else (-value << 1) - 1)


def make_footer(row_groups: Value, **fields: Value) -> dict[int, Value]:
    """Return a footer. `fields` are `schema` and `creator`."""
    return {
        1: 1,
        2: fields.get("schema", [{4: b"root", 5: 1}, {1: 6, 3: 1, 4: b"account"}]),
        3: 1,
        4: row_groups,
        6: fields.get("creator", b"parquet-mr version 1.13.1"),
    }


def make_row_group(
    rows: int, begin: int, packed_bytes: int, *, values: int | None = None, **fields: Value
) -> Value:
    """Return a row group with the column `account`. `fields` are `codec`, `type` and `file`."""
    description: dict[int, Value] = {
        1: fields.get("type", 6),
        3: [b"account"],
        4: fields.get("codec", 0),
        5: rows if values is None else values,
        6: 0,
        7: packed_bytes,
        9: begin,
    }
    chunk: dict[int, Value] = {2: 0, 3: description}
    if "file" in fields:
        chunk[1] = fields["file"]
    return {1: [chunk], 2: 0, 3: rows}


def make_page(
    values: int, content: bytes, *, unpacked_bytes: int, encoding: int = 0, extra_bytes: int = 0
) -> bytes:
    """Return a data page whose header announces these numbers.

    `extra_bytes` is the length of a list of empty structs in the header that no reader knows.
    """
    header: dict[int, Value] = {
        1: 0,
        2: Raw(5, encode_number(unpacked_bytes << 1)),
        3: Raw(5, encode_number(len(content) << 1)),
        5: {1: values, 2: encoding, 3: 3, 4: 3},
    }
    if extra_bytes:
        list_head = bytes([0xF0 | _STRUCT]) + encode_number(extra_bytes)
        header[15] = Raw(_LIST, list_head + bytes(extra_bytes))
    return encode_struct(header) + content


def make_file(footer: Mapping[int, Value] | bytes, pages: bytes = b"") -> bytes:
    """Return a file of these pages and this footer."""
    encoded_footer = footer if isinstance(footer, bytes) else encode_struct(footer)
    return MAGIC + pages + encoded_footer + len(encoded_footer).to_bytes(4, "little") + MAGIC
