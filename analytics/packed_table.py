"""Measure a Parquet file that another account wrote, before anything unpacks it.

A few kilobytes of Parquet can contain billions of rows, or unpack to gigabytes. So the hub measures
each table of a member before Spark reads it. The measurement adds up the sizes that the file's
headers announce, and stops at the first page that would exceed the limit. Nothing is unpacked for
it, except lists of values (dictionaries), whose announced size is counted first.

Rules:

1. Spark reads as many rows as the footer's row groups announce. So these numbers are counted.

2. Each page is counted with the size that it announces. Snappy repeats that size in the first bytes
   of a page. Both must be equal, so that no page unpacks to more. Any other compression is refused,
   because Mendq's nightly job writes Snappy (`PACKING`).

3. A page may name a value of a dictionary many times, and Spark copies the value each time. So each
   value of a column counts with the length of the longest value of its dictionary.

4. Encodings that build a value from the one before it (DELTA_BYTE_ARRAY) are refused, because such
   a page can unpack to the square of its size.

5. Columns that share bytes are refused. Otherwise 60 kB of footer could name one large page two
   thousand times.

6. A page's header has a size limit, and all headers of a file together have one. Otherwise a single
   header could contain a list of 20 million items, which takes gigabytes of memory here.

7. Anything unusual is refused, so that Spark can read only what was measured: a repeated field, a
   number that Java would cut, a size that goes beyond its column.

The format: https://parquet.apache.org/docs/file-format/
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

# The compression of the nightly job's tables, by Spark's name.
PACKING = "snappy"
# Reasons in the summary for a file that is not read.
UNREADABLE_REASON = "unreadable"
TOO_MUCH_REASON = "too_much"

# Limits on a file's headers. The nightly job's tables have footers of about 5 kB, and some dozens
# of pages.
_MAXIMUM_FOOTER_BYTES = 64 * 1024
_MAXIMUM_CREATOR_BYTES = 256
_MAXIMUM_PAGES = 2_000
# A page's header takes about 30 bytes; some writers add the smallest and the largest value.
_MAXIMUM_PAGE_HEADER_BYTES = 16 * 1024
_MAXIMUM_BYTES_OF_ALL_PAGE_HEADERS = 1024 * 1024
# Spark handles nested columns and empty row groups recursively. If the recursion is too deep, its
# whole process ends, not only the task.
_MAXIMUM_SCHEMA_ELEMENTS = 200
_MAXIMUM_ROW_GROUPS = 100
_MAXIMUM_DEPTH = 12

_MAGIC = b"PAR1"
_FOOTER_END_BYTES = 8  # the length of the footer, and the magic number
# For each value, Spark keeps a number or the position of a text.
_BYTES_PER_VALUE = 8


class PackedTableRefused(Exception):
    """A file must not be unpacked. The error's text is the reason for the summary."""


class UnpackedSize(NamedTuple):
    """A number of rows, and a number of bytes after unpacking."""

    rows: int
    bytes: int

    def add(self, other: UnpackedSize) -> UnpackedSize:
        """Return the sum of both sizes."""
        return UnpackedSize(self.rows + other.rows, self.bytes + other.bytes)

    def subtract(self, other: UnpackedSize) -> UnpackedSize:
        """Return this size minus the other."""
        return UnpackedSize(self.rows - other.rows, self.bytes - other.bytes)

    def fits(self, limit: UnpackedSize) -> bool:
        """Return True if neither number is above its limit."""
        return self.rows <= limit.rows and self.bytes <= limit.bytes


def measure_packed_table(
    content: bytes,
    columns: Collection[str],
    limit: UnpackedSize,
    unpack_snappy: Callable[[bytes], bytes],
) -> UnpackedSize:
    """Return the number of rows of a Parquet file, and the most bytes to which `columns` unpack.

    Args:
        content: The file.
        columns: The names of the columns that will be read, in lower case. Others are not counted.
        limit: The most rows and bytes.
        unpack_snappy: Unpacks a page, or raises ValueError. It is called only for dictionaries,
            after their announced size was counted.

    Raises:
        PackedTableRefused: The nightly job cannot have written the file, or it exceeds the limit.
    """
    footer_position = _find_footer(content)
    footer = _ThriftReader(content, footer_position, len(content) - _FOOTER_END_BYTES).read_struct()
    _check_footer(footer)
    meter = _Meter(limit)
    measured_columns: list[_Column] = []
    for row_group in _get_structs(footer, 4):
        row_count = _get_count(row_group, 3)
        if not row_count:
            continue  # Spark skips it
        meter.add(UnpackedSize(row_count, 0))
        for chunk in _get_structs(row_group, 1):
            if 1 in chunk:  # its values are in another file
                raise PackedTableRefused(UNREADABLE_REASON)
            column = _Column.read(_get_struct(chunk, 3), footer_position)
            if column.name in columns:
                measured_columns.append(column)
    _check_that_columns_share_no_bytes(measured_columns)
    for column in measured_columns:
        column.measure(content, meter, unpack_snappy)
    return meter.size


def _find_footer(content: bytes) -> int:
    """Return the position at which the footer begins."""
    if len(content) < len(_MAGIC) + _FOOTER_END_BYTES:
        raise PackedTableRefused(UNREADABLE_REASON)
    footer_bytes = int.from_bytes(content[-_FOOTER_END_BYTES : -len(_MAGIC)], "little")
    footer_position = len(content) - _FOOTER_END_BYTES - footer_bytes
    is_whole = content.startswith(_MAGIC) and content.endswith(_MAGIC)
    if not is_whole or footer_bytes > _MAXIMUM_FOOTER_BYTES or footer_position < len(_MAGIC):
        raise PackedTableRefused(UNREADABLE_REASON)
    return footer_position


def _check_footer(footer: dict[int, Any]) -> None:
    """Raise PackedTableRefused if the footer alone could keep Spark busy or end its process."""
    creator = footer.get(6, b"")
    if not isinstance(creator, bytes) or len(creator) > _MAXIMUM_CREATOR_BYTES:
        # Spark searches this text with a pattern that takes long on long texts.
        raise PackedTableRefused(UNREADABLE_REASON)
    if len(_get_structs(footer, 2)) > _MAXIMUM_SCHEMA_ELEMENTS:
        raise PackedTableRefused(UNREADABLE_REASON)
    if len(_get_structs(footer, 4)) > _MAXIMUM_ROW_GROUPS:
        raise PackedTableRefused(TOO_MUCH_REASON)


class _Meter:
    """Adds up sizes. Raises PackedTableRefused as soon as they exceed the limit."""

    def __init__(self, limit: UnpackedSize) -> None:
        self.size = UnpackedSize(0, 0)
        self._limit = limit
        self._page_count = 0
        self._page_header_bytes = 0

    def add(self, size: UnpackedSize) -> None:
        self.size = self.size.add(size)
        if not self.size.fits(self._limit):
            raise PackedTableRefused(TOO_MUCH_REASON)

    def add_page(self, header_bytes: int, unpacked_bytes: int) -> None:
        self._page_count += 1
        self._page_header_bytes += header_bytes
        if self._page_count > _MAXIMUM_PAGES:
            raise PackedTableRefused(TOO_MUCH_REASON)
        if self._page_header_bytes > _MAXIMUM_BYTES_OF_ALL_PAGE_HEADERS:
            raise PackedTableRefused(TOO_MUCH_REASON)
        self.add(UnpackedSize(0, unpacked_bytes))


# Numbers of the Parquet format.
_UNPACKED_CODEC = 0
_SNAPPY_CODEC = 1
_TEXT_TYPE = 6
_FIXED_LENGTH_TYPE = 7
_DATA_PAGE = 0
_DICTIONARY_PAGE = 2
_PLAIN_ENCODING = 0
_OLD_DICTIONARY_ENCODING = 2
_DICTIONARY_ENCODING = 8
_DATA_ENCODINGS: tuple[int, ...] = (_PLAIN_ENCODING, _OLD_DICTIONARY_ENCODING, _DICTIONARY_ENCODING)
_ENCODINGS_OF_DICTIONARIES: tuple[int, ...] = (_PLAIN_ENCODING, _OLD_DICTIONARY_ENCODING)


@dataclass(frozen=True)
class _Page:
    """A packed page. `values` is the number of values that it announces."""

    is_dictionary: bool
    values: int
    header_bytes: int
    unpacked_bytes: int
    content: bytes


@dataclass(frozen=True)
class _Column:
    """A column of a row group. Its pages are at the positions `begin` to `end` of the file."""

    name: str
    type_number: int
    codec: int
    values: int
    begin: int
    end: int

    @classmethod
    def read(cls, description: dict[int, Any], footer_position: int) -> _Column:
        """Return the column that the footer describes. It must end before the footer."""
        path = description.get(3)
        if not isinstance(path, list) or not path or not isinstance(path[0], bytes):
            raise PackedTableRefused(UNREADABLE_REASON)
        data_position = _get_count(description, 9)
        begin = data_position
        if 11 in description:
            dictionary_position = _get_count(description, 11)
            if 0 < dictionary_position < data_position:
                begin = dictionary_position
        end = begin + _get_count(description, 7)
        if begin < len(_MAGIC) or end > footer_position:
            raise PackedTableRefused(UNREADABLE_REASON)
        return cls(
            # Spark compares names without regard to case.
            name=path[0].decode(errors="replace").lower(),
            type_number=_get_count(description, 1),
            codec=_get_count(description, 4),
            values=_get_count(description, 5),
            begin=begin,
            end=end,
        )

    def measure(
        self, content: bytes, meter: _Meter, unpack_snappy: Callable[[bytes], bytes]
    ) -> None:
        """Add the column's unpacked bytes to the meter."""
        if self.codec not in (_UNPACKED_CODEC, _SNAPPY_CODEC):
            raise PackedTableRefused(UNREADABLE_REASON)
        if self.type_number >= _FIXED_LENGTH_TYPE:
            raise PackedTableRefused(UNREADABLE_REASON)
        longest_bytes = 0
        values_in_pages = 0
        for page in self._walk_pages(content):
            meter.add_page(page.header_bytes, page.unpacked_bytes)
            if page.is_dictionary:
                longest_bytes = self._find_longest_value(page, unpack_snappy)
            else:
                values_in_pages += page.values
        if values_in_pages != self.values:
            raise PackedTableRefused(UNREADABLE_REASON)
        meter.add(UnpackedSize(0, self.values * (_BYTES_PER_VALUE + longest_bytes)))

    def _walk_pages(self, content: bytes) -> Iterator[_Page]:
        """Yield the pages. Only the first one may be a dictionary."""
        position = self.begin
        while position < self.end:
            header_limit = min(self.end, position + _MAXIMUM_PAGE_HEADER_BYTES)
            reader = _ThriftReader(content, position, header_limit)
            header = reader.read_struct()
            header_bytes = reader.position - position
            unpacked_bytes = _get_count(header, 2)
            page_end = reader.position + _get_count(header, 3)
            if page_end > self.end:
                raise PackedTableRefused(UNREADABLE_REASON)
            page_content = content[reader.position : page_end]
            if self._read_announced_size(page_content) != unpacked_bytes:
                raise PackedTableRefused(UNREADABLE_REASON)
            is_dictionary, values = _read_page_type(header)
            if is_dictionary and position != self.begin:
                raise PackedTableRefused(UNREADABLE_REASON)
            yield _Page(is_dictionary, values, header_bytes, unpacked_bytes, page_content)
            position = page_end

    def _read_announced_size(self, page_content: bytes) -> int:
        """Return the size to which a page unpacks, which its first bytes announce."""
        if self.codec == _UNPACKED_CODEC:
            return len(page_content)
        return _ThriftReader(page_content, 0, len(page_content)).read_unsigned(32)

    def _find_longest_value(self, page: _Page, unpack_snappy: Callable[[bytes], bytes]) -> int:
        """Return the length in bytes of the longest text in a dictionary; 0 if it has no texts."""
        if self.type_number != _TEXT_TYPE:
            return 0
        try:
            texts = page.content if self.codec == _UNPACKED_CODEC else unpack_snappy(page.content)
        except ValueError as error:
            raise PackedTableRefused(UNREADABLE_REASON) from error
        longest_bytes = 0
        position = 0
        for _ in range(page.values):
            text_position = position + 4
            text_bytes = int.from_bytes(texts[position:text_position], "little")
            position = text_position + text_bytes
            if position > len(texts):
                raise PackedTableRefused(UNREADABLE_REASON)
            longest_bytes = max(longest_bytes, text_bytes)
        return longest_bytes


def _check_that_columns_share_no_bytes(columns: Collection[_Column]) -> None:
    """Raise PackedTableRefused if a byte of the file belongs to two columns or row groups."""
    free_position = 0
    for column in sorted(columns, key=lambda column: (column.begin, column.end)):
        if column.begin < free_position:
            raise PackedTableRefused(UNREADABLE_REASON)
        free_position = column.end


def _read_page_type(header: dict[int, Any]) -> tuple[bool, int]:
    """Return True if a page is a dictionary, and the number of its values."""
    page_type = _get_count(header, 1)
    if page_type == _DICTIONARY_PAGE:
        details = _get_struct(header, 7)
        encodings = _ENCODINGS_OF_DICTIONARIES
    elif page_type == _DATA_PAGE:
        details = _get_struct(header, 5)
        encodings = _DATA_ENCODINGS
    else:
        raise PackedTableRefused(UNREADABLE_REASON)
    if _get_count(details, 2) not in encodings:
        raise PackedTableRefused(UNREADABLE_REASON)
    return page_type == _DICTIONARY_PAGE, _get_count(details, 1)


def _get_count(struct: dict[int, Any], number: int) -> int:
    """Return a field that must be an integer of at least 0."""
    value = struct.get(number)
    if type(value) is not int or value < 0:
        raise PackedTableRefused(UNREADABLE_REASON)
    return value


def _get_struct(struct: dict[int, Any], number: int) -> dict[int, Any]:
    """Return a field that must be a struct."""
    value = struct.get(number)
    if not isinstance(value, dict):
        raise PackedTableRefused(UNREADABLE_REASON)
    return value


def _get_structs(struct: dict[int, Any], number: int) -> list[dict[int, Any]]:
    """Return a field that must be a list of structs."""
    values = struct.get(number)
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise PackedTableRefused(UNREADABLE_REASON)
    return values


# Types of Thrift's compact protocol.
_TRUE, _FALSE, _BYTE, _INT16, _INT32, _INT64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(
    1, 13
)
_BITS_BY_TYPE = {_INT16: 16, _INT32: 32, _INT64: 64}
_LONG_LIST = 15


class _ThriftReader:
    """Reads one struct of Thrift's compact protocol as a dict, by field number.

    It reads bytes from `position` to `end`, and raises PackedTableRefused if they are not a struct.
    Each field and each list item takes at least one byte, so the number of bytes limits the memory
    that a struct takes.

    https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
    """

    def __init__(self, content: bytes, position: int, end: int) -> None:
        self.position = position
        self._content = content
        self._end = end

    def read_struct(self, depth: int = 0) -> dict[int, Any]:
        """Return the fields of a struct, by their number."""
        if depth > _MAXIMUM_DEPTH:
            raise PackedTableRefused(UNREADABLE_REASON)
        fields: dict[int, Any] = {}
        number = 0
        while header := self._read_byte():
            type_number = header & 0x0F
            number = number + (header >> 4) if header >> 4 else self._read_signed(16)
            if number in fields:
                raise PackedTableRefused(UNREADABLE_REASON)
            fields[number] = self._read_value(type_number, depth)
        return fields

    def read_unsigned(self, bits: int) -> int:
        """Return a number of variable length. Refuse a number that Java would cut to `bits`."""
        value = 0
        for shift in range(0, bits, 7):
            byte = self._read_byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >> bits:
                    break
                return value
        raise PackedTableRefused(UNREADABLE_REASON)

    def _read_signed(self, bits: int) -> int:
        value = self.read_unsigned(bits)
        return (value >> 1) ^ -(value & 1)

    def _read_byte(self) -> int:
        return self._read_bytes(1)[0]

    def _read_bytes(self, number_of_bytes: int) -> bytes:
        position = self.position
        if number_of_bytes > self._end - position:
            raise PackedTableRefused(UNREADABLE_REASON)
        self.position = position + number_of_bytes
        return self._content[position : self.position]

    def _read_value(self, type_number: int, depth: int) -> Any:
        if type_number in (_TRUE, _FALSE):
            return type_number == _TRUE
        return self._read_item(type_number, depth)

    def _read_item(self, type_number: int, depth: int) -> Any:
        """Return an item of a list or map, in which a boolean takes a byte of its own."""
        if type_number in _BITS_BY_TYPE:
            return self._read_signed(_BITS_BY_TYPE[type_number])
        if type_number in (_TRUE, _FALSE, _BYTE):
            return self._read_bytes(1)
        if type_number == _DOUBLE:
            return self._read_bytes(8)
        if type_number == _BINARY:
            return self._read_bytes(self.read_unsigned(32))
        if type_number in (_LIST, _SET):
            return self._read_list(depth)
        if type_number == _MAP:
            return self._read_map(depth)
        if type_number == _STRUCT:
            return self.read_struct(depth + 1)
        raise PackedTableRefused(UNREADABLE_REASON)

    def _read_list(self, depth: int) -> list[Any]:
        header = self._read_byte()
        size = header >> 4
        if size == _LONG_LIST:
            size = self.read_unsigned(32)
        self._check_depth_and_size(depth, size)
        return [self._read_item(header & 0x0F, depth + 1) for _ in range(size)]

    def _read_map(self, depth: int) -> list[Any]:
        """Return the keys and values of a map, one after the other."""
        size = self.read_unsigned(32)
        self._check_depth_and_size(depth, size)
        if not size:
            return []
        types = self._read_byte()
        items: list[Any] = []
        for _ in range(size):
            items.append(self._read_item(types >> 4, depth + 1))
            items.append(self._read_item(types & 0x0F, depth + 1))
        return items

    def _check_depth_and_size(self, depth: int, size: int) -> None:
        if depth > _MAXIMUM_DEPTH or size > self._end - self.position:
            raise PackedTableRefused(UNREADABLE_REASON)
