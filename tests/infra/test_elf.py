from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from infra.packaging.zips import AARCH64, foreign_libraries, machine

X86_64 = 62


def elf(e_machine: int, *, big_endian: bool = False) -> bytes:
    """The first bytes of a 64-bit shared library for a processor."""
    order = ">" if big_endian else "<"
    identity = b"\x7fELF" + bytes([2, 2 if big_endian else 1, 1]) + bytes(9)
    return identity + struct.pack(f"{order}HHI", 3, e_machine, 1) + bytes(40)


@pytest.mark.parametrize(
    "content", [b"", b"\x7fEL", b"\x7fELF", elf(AARCH64)[:19], b"def f(): ..."]
)
def test_what_is_no_library_has_no_machine(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    assert machine(file) is None


@pytest.mark.parametrize("big_endian", [False, True])
def test_the_machine_is_read_in_the_files_own_byte_order(tmp_path: Path, big_endian: bool) -> None:
    file = tmp_path / "lib.so"
    file.write_bytes(elf(AARCH64, big_endian=big_endian))
    assert machine(file) == AARCH64


@pytest.mark.skipif(sys.platform != "linux", reason="this machine's Python is no ELF file")
def test_the_running_python_is_an_elf_file() -> None:
    assert machine(Path(sys.executable).resolve()) is not None


def test_libraries_for_arm64_and_everything_else_may_stay(tmp_path: Path) -> None:
    (tmp_path / "lib.so").write_bytes(elf(AARCH64))
    (tmp_path / "module.py").write_text("")
    assert list(foreign_libraries(tmp_path)) == []


def test_a_library_for_another_processor_is_found_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "lib.so.1").write_bytes(elf(X86_64))
    assert list(foreign_libraries(tmp_path)) == [Path("package/lib.so.1")]
