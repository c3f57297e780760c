from __future__ import annotations

from pathlib import Path

import pytest

from infra.packaging import wheels


def test_a_lock_that_cannot_be_fetched_keeps_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    lock = tmp_path / "requirements.txt"
    lock.write_text(f"no-such-package==1.0 --hash=sha256:{'0' * 64}\n")
    folder = tmp_path / ".wheels"
    folder.mkdir()
    (folder / "kept.whl").write_bytes(b"")
    with pytest.raises(wheels.WheelsUnavailable) as unavailable:
        wheels.fill({lock: wheels.LAMBDA_PYTHON}, folder)
    assert str(unavailable.value).endswith(wheels.REMEDY)
    assert "\n" not in str(unavailable.value)
    assert [each.name for each in tmp_path.glob(".wheels*")] == [".wheels"]
    assert [each.name for each in folder.iterdir()] == ["kept.whl"]


def test_the_command_says_one_line_and_exits_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unavailable() -> None:
        raise wheels.WheelsUnavailable("nothing could be fetched")

    monkeypatch.setattr(wheels, "fill", unavailable)
    assert wheels.main() == 1
    assert capsys.readouterr().err == "nothing could be fetched\n"


@pytest.mark.parametrize("lock", wheels.PYTHONS, ids=lambda each: each.parent.name)
def test_every_package_of_a_sub_lock_is_there(lock: Path) -> None:
    names = [line.split("==")[0] for line in lock.read_text().splitlines() if "==" in line]
    there = [each.name.lower() for each in wheels.WHEELS.iterdir()]
    for name in names:
        assert any(each.startswith(name.replace("-", "_")) for each in there), name


@pytest.mark.parametrize("lock", wheels.PYTHONS, ids=lambda each: each.parent.name)
def test_what_travels_is_what_was_tested(lock: Path) -> None:
    everything = (wheels.ROOT / "requirements.txt").read_text().splitlines()
    assert {line for line in lock.read_text().splitlines() if "==" in line} <= set(everything)
