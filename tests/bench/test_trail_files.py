"""The trail that the bench reads: the same every time, and what its truth says."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from bench.trail_files import Trail, trail
from functions.healing.failed_call import FailedCall, read


def _contents(made: Trail) -> dict[str, bytes]:
    return {each.relative_to(made.root).as_posix(): each.read_bytes() for each in made.files()}


def test_the_same_trail_every_time(tmp_path: Path) -> None:
    one, other = (trail(4, 50, tmp_path / name) for name in ("one", "other"))
    assert len(_contents(one)) == 4
    assert _contents(one) == _contents(other)


def test_what_was_made_is_taken_again(tmp_path: Path) -> None:
    made = trail(1, 10, tmp_path)
    (file,) = made.files()
    file.write_bytes(b"kept")
    assert _contents(trail(1, 10, tmp_path)) == {file.relative_to(made.root).as_posix(): b"kept"}


def test_half_a_trail_is_made_anew(tmp_path: Path) -> None:
    made = trail(1, 10, tmp_path)
    whole = _contents(made)
    (made.root / "truth.json").unlink()
    made.files()[0].write_bytes(b"half")
    assert _contents(trail(1, 10, tmp_path)) == whole


def test_the_truth_is_what_lies_there(tmp_path: Path) -> None:
    made = trail(6, 1000, tmp_path)
    texts = [gzip.decompress(each) for each in _contents(made).values()]
    records = [each for text in texts for each in json.loads(text)["Records"]]
    failed = [each for each in map(read, records) if isinstance(each, FailedCall)]
    truth = made.truth
    assert (truth.files, truth.records) == (6, len(records))
    assert truth.failed_sqs_calls == len(failed) > 0
    assert truth.raw_bytes == sum(map(len, texts))
    assert truth.bytes == sum(map(len, _contents(made).values()))
    assert len({each.event_id for each in failed}) == len(failed)


def test_its_shape_is_the_one_that_goals_were_set_on(tmp_path: Path) -> None:
    """1.77 KB a record, 7.2 : 1, 70 of 100 SQS's, 1 of 100 failed."""
    truth = trail(2, 5_000, tmp_path).truth
    assert 1_700 < truth.raw_bytes / truth.records < 1_850
    assert 6.8 < truth.raw_bytes / truth.bytes < 7.6
    assert 0.005 < truth.failed_sqs_calls / truth.records < 0.009


def test_small_files_hold_the_failures_of_large_ones(tmp_path: Path) -> None:
    large, small = trail(2, 1_000, tmp_path), trail(20, 100, tmp_path)
    assert small.truth.failed_sqs_calls == large.truth.failed_sqs_calls
