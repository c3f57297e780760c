"""Which processor a shared library is built for, read from its ELF header.

https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

AARCH64 = 183
_MAGIC = b"\x7fELF"


def machine(file: Path) -> int | None:
    """The header's e_machine; None where the file is no ELF file."""
    with file.open("rb") as opened:
        header = opened.read(20)
    if len(header) < 20 or not header.startswith(_MAGIC):
        return None
    return int.from_bytes(header[18:20], "big" if header[5] == 2 else "little")


def foreign_libraries(folder: Path) -> Iterator[Path]:
    """Every file below `folder` that Lambda on arm64 could not load."""
    for file in sorted(folder.rglob("*")):
        if file.is_file() and machine(file) not in (None, AARCH64):
            yield file.relative_to(folder)
