"""The processors that shipped libraries and programs are built for."""

from __future__ import annotations

from pathlib import Path

# The machine number of 64-bit ARM in an ELF header (`e_machine`, EM_AARCH64).
AARCH64 = 183


def read_processors(folder: Path) -> set[int]:
    """Return the ELF machine numbers of all libraries and programs below `folder`."""
    processors = set()
    for path in folder.rglob("*"):
        header = path.read_bytes()[:20] if path.is_file() else b""
        if header.startswith(b"\x7fELF"):
            processors.add(int.from_bytes(header[18:], "little"))
    return processors
