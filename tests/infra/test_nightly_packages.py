"""The archive of compiled packages: what it holds, for whom, and that Python finds it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from infra.packaging import emr
from infra.packaging.emr import archive
from infra.packaging.wheels import NIGHTLY_LOCK, WHEELS, WheelsUnavailable
from infra.packaging.zips import AARCH64, LAMBDA, THIS_MACHINE, ForeignLibrary, machine

# https://docs.aws.amazon.com/linux/al2023/release-notes/: what Amazon Linux 2023 has.
NEWEST_GLIBC, NEWEST_GLIBCXX = 34, 29
# A worker starts with it: half a minute of download would be felt, and 20 GB are its disk.
MOST_BYTES, MOST_BYTES_UNPACKED = 120 * 1024**2, 400 * 1024**2
NATIVE = ("pyarrow", "isal", "msgspec", "numpy", "pandas")


@pytest.fixture(scope="module")
def for_emr(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _unpacked(archive(LAMBDA), tmp_path_factory.mktemp("emr"))


def _unpacked(packed: Path, folder: Path) -> Path:
    with tarfile.open(packed) as tar:
        tar.extractall(folder, filter="data")
    return folder


def _libraries(folder: Path) -> list[Path]:
    return [each for each in folder.rglob("*") if re.search(r"\.so(\.\d+)*$", each.name)]


def test_every_library_is_one_that_emr_can_load(for_emr: Path) -> None:
    libraries = _libraries(for_emr)
    by_package = {each.relative_to(for_emr).parts[0] for each in libraries}
    assert set(NATIVE) <= by_package
    for each in libraries:
        assert machine(each) == AARCH64, each
        content = each.read_bytes()
        for symbol, newest in ((rb"GLIBC_2", NEWEST_GLIBC), (rb"GLIBCXX_3\.4", NEWEST_GLIBCXX)):
            needed = [int(found) for found in re.findall(symbol + rb"\.(\d+)", content)]
            assert max(needed, default=0) <= newest, each
        version = re.search(r"\.cpython-(\d+)-", each.name)
        assert version is None or version[1] == "311", each


def test_it_holds_nothing_but_what_runs_and_is_small_enough(for_emr: Path) -> None:
    names = {each.name for each in for_emr.iterdir()}
    assert not {each for each in names if each.endswith(".dist-info")}
    assert names <= {*NATIVE, "numpy.libs", "dateutil", "pytz", "six.py", "tzdata"}
    assert archive(LAMBDA).stat().st_size <= MOST_BYTES
    sizes = [each.stat().st_size for each in for_emr.rglob("*") if each.is_file()]
    assert sum(sizes) <= MOST_BYTES_UNPACKED


def test_spark_unpacks_it_by_its_name_and_nothing_lies_outside() -> None:
    assert archive(LAMBDA).name.endswith(".tgz")
    with tarfile.open(archive(LAMBDA)) as tar:
        members = tar.getmembers()
    assert {each.mtime for each in members} == {0}
    assert {(each.uid, each.gid, each.uname) for each in members} == {(0, 0, "")}
    assert not [each.name for each in members if each.name.startswith(("/", ".."))]
    names = [Path(each.name) for each in members]
    assert names == sorted(names)


def test_python_finds_all_of_it_there_and_nowhere_else(tmp_path: Path) -> None:
    folder = _unpacked(archive(THIS_MACHINE), tmp_path / "deps")
    line = f"import {', '.join(NATIVE)}; print(*(each.__file__ for each in ({', '.join(NATIVE)},)))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", line],
        cwd=tmp_path,
        env={"PYTHONPATH": "./deps", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(done.stdout.split()) == len(NATIVE)
    assert all(Path(each).is_relative_to(folder) for each in done.stdout.split())


def _few(folder: Path) -> Path:
    """Wheels of the smallest package, instead of all."""
    folder.mkdir()
    for each in WHEELS.glob("six-*.whl"):
        shutil.copy(each, folder)
    return folder


@pytest.fixture
def six_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    whole = NIGHTLY_LOCK.read_text()
    lock = tmp_path / "requirements.txt"
    lock.write_text(whole[whole.index("six==") : whole.index("tzdata==")])
    monkeypatch.setattr(emr, "NIGHTLY_LOCK", lock)
    return _few(tmp_path / "wheels")


def test_the_same_wheels_give_the_same_bytes(six_alone: Path) -> None:
    first = archive(LAMBDA, six_alone)
    content = first.read_bytes()
    first.unlink()
    assert archive(LAMBDA, six_alone) == first
    assert first.read_bytes() == content


def test_another_lock_or_target_gives_another_archive(six_alone: Path, tmp_path: Path) -> None:
    first = archive(LAMBDA, six_alone)
    assert archive(THIS_MACHINE, six_alone) != first
    with (tmp_path / "requirements.txt").open("a") as lock:
        lock.write("# changed\n")
    assert archive(LAMBDA, six_alone) != first


def test_a_wheel_that_is_not_there_leaves_no_archive(six_alone: Path) -> None:
    for each in six_alone.iterdir():
        each.unlink()
    with pytest.raises(WheelsUnavailable):
        archive(LAMBDA, six_alone)
    assert not list(six_alone.iterdir())


def test_a_library_for_another_processor_is_refused(
    six_alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def foreign(folder: Path, *_: object) -> None:
        folder.mkdir()
        shutil.copy(Path(sys.executable).resolve(), folder / "library.so")

    if machine(Path(sys.executable).resolve()) in (None, AARCH64):
        pytest.skip("this machine's own binaries are not foreign to EMR")
    monkeypatch.setattr(emr, "install", foreign)
    with pytest.raises(ForeignLibrary, match=r"library\.so is not built for arm64"):
        archive(LAMBDA, six_alone)
    assert not (six_alone / "archives").exists()
