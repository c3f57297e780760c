"""The limit counts what is there, in processes of its own."""

from __future__ import annotations

from pathlib import Path

from bench import limit
from bench.peer_answers import PEERS
from bench.trail_files import trail


def test_the_limit_finds_what_the_trail_holds(tmp_path: Path) -> None:
    made = trail(5, 300, tmp_path)
    with limit.processes() as read_all:
        inflated = read_all(limit.inflate, made.files())
        parsed = read_all(limit.parse, made.files())
    assert inflated == (made.truth.raw_bytes, 0)
    assert parsed == (made.truth.raw_bytes, made.truth.failed_sqs_calls)
    assert parsed.failed_sqs_calls > 0


def test_the_peers_are_those_that_the_lock_names() -> None:
    lock = (Path(limit.__file__).parent / "peers.txt").read_text()
    assert [name for name in PEERS if f"\n{name.lower()}==" not in f"\n{lock}"] == []
