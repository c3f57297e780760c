"""The mute list `mendq.toml`: what it leaves out, its end dates, stale mutes and mistakes."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mendq.cli.app import app
from mendq.cli.mute_list import FILE_NAME, MuteList
from mendq.model.mutes import Mute, MutesUnreadable, read_mutes
from tests.lint.builders import FAULTY_TEMPLATE

pytestmark = pytest.mark.usefixtures("no_account")
VISIBILITY = "visibility_timeout_too_short"
TODAY = datetime.now(UTC).date()
NAMED_TEMPLATE = FAULTY_TEMPLATE.replace(
    "VisibilityTimeout: !Ref Timeout", "VisibilityTimeout: !Ref Timeout\n      QueueName: shop-in"
)
MUTE: dict[str, Any] = {
    "queue": "orders-*",
    "symptom": VISIBILITY,
    "reason": "a heartbeat extends it",
    "until": date(2030, 1, 31),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a faulty template."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.yaml").write_text(NAMED_TEMPLATE)
    return tmp_path


def _write_mute(path: Path, queue: str, until: date, symptom: str = VISIBILITY) -> None:
    path.write_text(
        f'[[mute]]\nqueue = "{queue}"\nsymptom = "{symptom}"\n'
        f'reason = "a heartbeat extends it"\nuntil = {until}\n'
    )


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["lint", "shop.yaml", *arguments])


@pytest.mark.parametrize("queue", ["Orders", "shop-in", "shop-*", "Ord*", "*"])
def test_mute_of_the_queue_leaves_its_finding_out_with_the_reason_and_exits_0(
    folder: Path, queue: str
) -> None:
    _write_mute(folder / FILE_NAME, queue, TODAY)
    result = _run("--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    (muted,) = [
        finding
        for finding in document["templates"][0]["ignored"]
        if finding["symptom"] == VISIBILITY
    ]
    assert muted["reason"] == f"muted until {TODAY}: a heartbeat extends it"
    assert (document["findings"], document["stale"]) == (0, [])


@pytest.mark.parametrize("queue", ["orders", "shop", "shop-in.fifo", "in*"])
def test_mute_of_another_queue_leaves_nothing_out_and_is_not_stale(
    folder: Path, queue: str
) -> None:
    _write_mute(folder / FILE_NAME, queue, TODAY)
    result = _run("--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["stale"] == []


def test_mute_that_has_ended_leaves_nothing_out_and_is_reported(folder: Path) -> None:
    _write_mute(folder / FILE_NAME, "Orders", TODAY - timedelta(days=1))
    result = _run("--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["findings"] == 1
    (stale,) = document["stale"]
    assert stale["where"] == f"{FILE_NAME}, mute 1"
    assert "ended on" in stale["because"]


def test_mute_is_stale_if_its_queue_was_checked_and_has_no_such_symptom(folder: Path) -> None:
    _write_mute(folder / FILE_NAME, "shop-*", TODAY, "not_encrypted")
    document = json.loads(_run("--json").stdout)
    (stale,) = document["stale"]
    assert (stale["symptom"], "shop-* names 1 checked queue, and none has" in stale["because"]) == (
        "not_encrypted",
        True,
    )


@pytest.mark.parametrize("symptom", ["dlq_type_mismatch", "backlog_grows"])
def test_mute_of_a_symptom_that_lint_could_not_check_is_not_stale(
    folder: Path, symptom: str
) -> None:
    """The template's DLQ is imported, and no template shows how a backlog grows."""
    _write_mute(folder / FILE_NAME, "shop-*", TODAY, symptom)
    assert json.loads(_run("--json").stdout)["stale"] == []


@pytest.mark.parametrize(
    ("unchecked_queue", "is_stale"), [("orders-out", False), ("bills-out", True)]
)
def test_mute_of_several_queues_is_stale_only_if_all_of_them_were_checked(
    unchecked_queue: str, is_stale: bool
) -> None:
    mute_list = MuteList(FILE_NAME, (Mute(**MUTE),), date(2029, 6, 1))
    mute_list.note_checked({VISIBILITY}, "orders-in")
    mute_list.note_unchecked({VISIBILITY}, unchecked_queue)
    assert bool(list(mute_list.list_stale())) is is_stale


@pytest.mark.parametrize(
    ("patterns", "is_stale"),
    [
        (["*"], True),
        (["orders-*"], True),
        (["bills", "o*"], True),
        (["orders-in"], False),
        (["orders-i*"], False),
        ([], False),
    ],
    ids=str,
)
def test_mute_of_several_queues_is_stale_only_if_the_run_listed_all_queues_of_its_pattern(
    patterns: list[str], is_stale: bool
) -> None:
    mute_list = MuteList(FILE_NAME, (Mute(**MUTE),), date(2029, 6, 1))
    mute_list.note_listed(patterns)
    mute_list.note_checked({VISIBILITY}, "orders-in")
    assert bool(list(mute_list.list_stale())) is is_stale


def test_config_option_names_another_file(folder: Path) -> None:
    (folder / FILE_NAME).write_text("[")
    _write_mute(folder / "other.toml", "Orders", TODAY)
    assert _run("--config", "other.toml").exit_code == 0


def test_config_option_with_a_missing_file_exits_2(folder: Path) -> None:
    assert (folder / "shop.yaml").exists()
    result = _run("--config", "gone.toml")
    assert result.exit_code == 2
    assert "there is no gone.toml" in result.stderr


def test_mute_list_with_mistakes_exits_2_and_names_all_of_them(folder: Path) -> None:
    (folder / FILE_NAME).write_text(
        '[[mute]]\nqueue = "a*b"\nsymptom = "dlq_mising"\n[[mute]]\nquue = 1\n[other]\n'
    )
    result = _run()
    assert result.exit_code == 2
    errors = " ".join(result.stderr.split())
    for mistake in (
        "other: no such section",
        "mute 1, reason: is missing",
        "mute 1, until: is missing",
        "mute 1, queue: a * stands before the end; use one *, at the end",
        "did you mean dlq_missing?",
        "mute 2, queue: is missing",
        "mute 2, quue: no such field",
    ):
        assert mistake in errors


@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        ({"queue": ""}, "mute 1, queue: not a text"),
        ({"queue": 5}, "mute 1, queue: not a text"),
        (
            {"queue": "arn:aws:sqs:eu-west-1:111122223333:orders"},
            "mute 1, queue: an ARN or URL is not a queue's name; write orders",
        ),
        (
            {"queue": "https://sqs.eu-west-1.amazonaws.com/111122223333/orders"},
            "mute 1, queue: an ARN or URL is not a queue's name; write orders",
        ),
        ({"reason": "  "}, "mute 1, reason: not a text"),
        ({"reason": "x" * 301}, "mute 1, reason: not a text"),
        ({"until": "soon"}, "mute 1, until: not a day"),
        ({"until": 2030}, "mute 1, until: not a day"),
        ({"until": datetime(2030, 1, 1, tzinfo=UTC)}, "mute 1, until: not a day"),
        ({"symptom": "exposed"}, "mute 1, symptom: 'exposed' is not a symptom"),
    ],
    ids=str,
)
def test_mute_with_one_wrong_field_is_refused_with_its_name(
    change: dict[str, Any], mistake: str
) -> None:
    with pytest.raises(MutesUnreadable, match=f"^{mistake}"):
        read_mutes({"mute": [{**MUTE, **change}]}, {VISIBILITY})


def test_mute_takes_its_day_as_a_toml_day_or_as_a_text() -> None:
    as_text = {**MUTE, "until": "2030-01-31"}
    mutes = read_mutes({"mute": [MUTE, as_text]}, {VISIBILITY})
    assert mutes[0] == mutes[1] == Mute(**MUTE)


def test_mute_holds_on_its_last_day_and_not_on_the_next() -> None:
    mute = Mute(**MUTE)
    assert not mute.has_ended(date(2030, 1, 31))
    assert mute.has_ended(date(2030, 2, 1))


def test_ended_mute_does_not_hide_a_finding_that_another_mute_covers() -> None:
    ended = Mute(**{**MUTE, "until": date(2029, 1, 1)})
    mute_list = MuteList(FILE_NAME, (ended, Mute(**MUTE)), date(2029, 6, 1))
    assert mute_list.find(VISIBILITY, "orders-in") == Mute(**MUTE)
    assert [mute for _, mute, _ in mute_list.list_stale()] == [ended]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"[[mute", "Expected"),
        (b'[[mute]]\nreason = "\xff"', "invalid start byte"),
        (b"a = " + b"[" * 100_000, "recursion"),
    ],
    ids=["unclosed", "no UTF-8", "nested"],
)
def test_mute_list_that_is_no_toml_exits_2_names_the_file_and_lints_nothing(
    folder: Path, content: bytes, problem: str
) -> None:
    (folder / FILE_NAME).write_bytes(content)
    result = _run()
    assert (result.exit_code, result.stdout) == (2, "")
    error_text = " ".join(result.stderr.split())
    assert f"{FILE_NAME} is not valid TOML: " in error_text
    assert problem in error_text


def test_mute_list_that_is_a_folder_exits_2_and_lints_nothing(folder: Path) -> None:
    (folder / FILE_NAME).mkdir()
    result = _run()
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{FILE_NAME} cannot be read: Is a directory" in result.stderr


def test_mute_list_that_is_a_pipe_is_refused_and_not_opened(folder: Path) -> None:
    os.mkfifo(folder / FILE_NAME)
    result = CliRunner().invoke(app, ["lint", "shop.yaml"])
    assert result.exit_code == 2
    assert "not a regular file" in result.stderr


def test_mute_list_with_a_key_of_very_many_parts_is_refused_before_it_is_parsed(
    folder: Path,
) -> None:
    (folder / FILE_NAME).write_text("a" + ".a" * 10_001 + " = 1\n")
    result = CliRunner().invoke(app, ["lint", "shop.yaml"])
    assert result.exit_code == 2
    assert "10,000 dots" in result.stderr


def test_mute_list_with_a_number_of_too_many_digits_is_refused_in_one_line(folder: Path) -> None:
    (folder / FILE_NAME).write_text(f"[[mute]]\nqueue = {'9' * 5_000}\n")
    result = CliRunner().invoke(app, ["lint", "shop.yaml"])
    assert result.exit_code == 2
    assert "is not valid TOML" in result.stderr


@pytest.mark.parametrize(
    ("line", "has_cure"),
    [("until = 2027-02-30", True), ("until = 30.06.2027", True), ("queue = orders", False)],
)
def test_line_that_is_no_toml_is_refused_with_its_number_and_a_wrong_day_with_the_cure(
    folder: Path, line: str, *, has_cure: bool
) -> None:
    (folder / FILE_NAME).write_text(f"[[mute]]\n{line}\n")
    result = _run()
    assert result.exit_code == 2
    message = " ".join(result.output.split())
    assert "mendq.toml is not valid TOML" in message
    assert "line 2" in message
    assert ("such as until = 2027-06-30" in message) is has_cure
