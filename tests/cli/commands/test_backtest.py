"""Test `mendq backtest`, which decides past incidents like heal, without a deployed stack."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from analytics.own_incidents import is_own_queue
from mendq.cases.spread import Spread
from mendq.cli.app import app
from mendq.cli.backtest import nightly_run
from mendq.cli.backtest.configuration import Configuration, read_configuration
from mendq.cli.backtest.judged import (
    Backtest,
    JudgedIncident,
    PastIncident,
    count_notifications,
    explain_queues_left_alone,
)
from mendq.cli.backtest.nightly_run import BacktestRun
from mendq.cli.exit_codes import Exit
from mendq.cli.look import backtest as command
from mendq.model.evidence import Sighting
from mendq.model.facts import Facts, Need
from mendq.model.mode import Mode
from tests.analytics.recount.plain_count import count_incidents
from tests.analytics.recount.scene import SceneSize, write_scene
from tests.cli.builders import Operator
from tests.cli.scan.builders import read_account_state

AT = datetime(2026, 11, 10, 9, tzinfo=UTC)
TOO_SHORT = "visibility_timeout_too_short"


def _make_arn(name: str) -> str:
    return f"arn:aws:sqs:us-east-1:123456789012:{name}"


def _make_incident(
    name: str, minutes: float = 0, why: str = "unknown", **over: Any
) -> PastIncident:
    times = [AT + timedelta(minutes=minutes, seconds=second) for second in range(3)]
    seen = [
        Sighting(time, f"{name}-{time}", "r", "arn:aws:iam::123456789012:role/w") for time in times
    ]
    fields: dict[str, Any] = {"failed_calls": 3, "error_codes": ("MessageNotInflight",)}
    fields |= {
        "incident_id": f"{name}-{minutes}",
        "queue_arn": _make_arn(name),
        "symptom": TOO_SHORT,
    }
    fields["evidence"] = tuple(sighting.to_text() for sighting in seen) if why == "unknown" else ()
    fields |= {"principals": (), "first_failure": times[0], "last_failure": times[-1]}
    fields |= {"why": why, **over}
    return PastIncident(**fields)


def _write_snapshot(path: Path, names: Iterable[str], tags: dict[str, str] | None = None) -> Path:
    configuration = {"attributes": {"VisibilityTimeout": "30"}, "tags": tags or {}}
    path.write_text(json.dumps([{"queue_arn": _make_arn(name), **configuration} for name in names]))
    return path


def _judge(snapshot: Path, *incidents: PastIncident) -> list[JudgedIncident]:
    return list(Backtest(read_configuration(snapshot)).judge_incidents(incidents))


def _list_outcomes(judged: JudgedIncident) -> list[str]:
    return [judged.answers[mode].would.would for mode in Mode]


def test_backtest_reports_for_each_mode_what_heal_would_do(tmp_path: Path) -> None:
    snapshot = _write_snapshot(tmp_path / "s.json", ["orders"])
    (judged,) = _judge(snapshot, _make_incident("orders"))
    assert _list_outcomes(judged) == ["only notes", "proposes", "does"]
    assert judged.answers[Mode.HEAL].would.steps == ("VisibilityTimeout: 30 s -> 45 s",)
    sent = [count_notifications([judged], mode)["notifications"] for mode in Mode]
    assert sent == [0, 1, 0]
    assert explain_queues_left_alone([judged]) == {}


def test_backtest_explains_queues_left_alone_by_tag_little_evidence_or_missing_snapshot(
    tmp_path: Path,
) -> None:
    off = _write_snapshot(tmp_path / "s.json", ["off", "few"], {"mendq": "off"})
    judged = _judge(off, _make_incident("off"), _make_incident("few", why="too_little_evidence"))
    alone = explain_queues_left_alone([*judged, *_judge(off, _make_incident("elsewhere"))])
    assert set(alone) == {_make_arn("off"), _make_arn("few"), _make_arn("elsewhere")}
    assert alone[_make_arn("off")] == "its tag `mendq` is `off`"
    assert "too few failed calls" in alone[_make_arn("few")]
    assert "cannot say: s.json does not have it" in alone[_make_arn("elsewhere")]


def test_backtest_cannot_judge_a_queue_with_malformed_attributes_but_judges_the_others(
    tmp_path: Path,
) -> None:
    configuration = read_configuration(_write_snapshot(tmp_path / "s.json", ["odd", "orders"]))

    def read_facts(queue_arn: str, needs: Collection[Need]) -> Facts:
        facts = configuration.read_facts(queue_arn, needs)
        odd = {"VisibilityTimeout": "soon"} if queue_arn == _make_arn("odd") else {}
        return replace(facts, attributes={**facts.attributes, **odd})

    backtest = Backtest(Configuration(configuration.tags, read_facts))
    first, second = backtest.judge_incidents([_make_incident("odd"), _make_incident("orders")])
    assert (_list_outcomes(first)[2], _list_outcomes(second)[2]) == ("cannot say", "does")


def test_backtest_only_notes_incidents_of_a_queue_with_an_observe_tag_in_every_mode(
    tmp_path: Path,
) -> None:
    snapshot = _write_snapshot(tmp_path / "s.json", ["orders"], {"mendq": "observe"})
    (judged,) = _judge(snapshot, _make_incident("orders"))
    assert _list_outcomes(judged) == ["only notes"] * 3


def test_backtest_of_a_snapshot_folder_does_not_wait_for_a_named_pipe_in_it(
    tmp_path: Path,
) -> None:
    os.mkfifo(tmp_path / "nobody-waits-for-this.json")
    _write_snapshot(tmp_path / "s.json", ["orders"])
    (judged,) = _judge(tmp_path, _make_incident("orders"))
    assert _list_outcomes(judged) == ["only notes", "proposes", "does"]


def test_backtest_in_heal_mode_only_proposes_for_a_symptom_that_heal_never_fixes(
    tmp_path: Path,
) -> None:
    plain = _write_snapshot(tmp_path / "s.json", ["orders.fifo"])
    (judged,) = _judge(plain, _make_incident("orders.fifo", symptom="dedup_id_missing"))
    assert _list_outcomes(judged) == ["only notes", "proposes", "proposes"]


def test_backtest_refuses_changes_from_the_fourth_queue_with_a_symptom_and_counts_one_notification(
    tmp_path: Path,
) -> None:
    names = [f"q{n}" for n in range(5)]
    snapshot = _write_snapshot(tmp_path / "s.json", names)
    judged = _judge(snapshot, *(_make_incident(name, n) for n, name in enumerate(names)))
    would = [incident.answers[Mode.HEAL].would.would for incident in judged]
    assert would == ["does"] * 3 + ["would be refused: mass_symptom"] * 2
    assert count_notifications(judged, Mode.HEAL)["notifications"] == 1


def test_backtest_refuses_no_change_if_five_queues_have_a_symptom_ninety_minutes_apart(
    tmp_path: Path,
) -> None:
    names = [f"q{n}" for n in range(5)]
    snapshot = _write_snapshot(tmp_path / "s.json", names)
    apart = _judge(snapshot, *(_make_incident(name, 90 * n) for n, name in enumerate(names)))
    assert {incident.answers[Mode.HEAL].would.would for incident in apart} == {"does"}


def test_backtest_of_many_incidents_keeps_fewer_than_ten_notes_of_which_queues_had_a_symptom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each incident reads all notes. If none were dropped, weeks would take hours."""
    snapshot = _write_snapshot(tmp_path / "s.json", ["q"])
    note_counts = [0]
    list_outdated_notes = Spread.list_outdated_notes

    def record_note_count(spread: Spread, now: datetime) -> list[str]:
        note_counts.append(len(spread.notes))
        return list_outdated_notes(spread, now)

    monkeypatch.setattr(Spread, "list_outdated_notes", record_note_count)
    assert len(_judge(snapshot, *(_make_incident("q", 30 * n) for n in range(50)))) == 50
    assert max(note_counts) < 10


def test_backtest_counts_notifications_of_the_worst_hour_and_those_held_back(
    tmp_path: Path,
) -> None:
    snapshot = _write_snapshot(tmp_path / "s.json", ["orders"])
    many = [_make_incident("orders", n / 10) for n in range(25)]
    sent = count_notifications(_judge(snapshot, *many, _make_incident("orders", 600)), Mode.PROPOSE)
    assert (sent["notifications"], sent["in_worst_hour"], sent["held_back"]) == (26, 25, 5)
    assert sent["worst_hour"] == "2026-11-10T09"


def _read_refusal(*arguments: str) -> str:
    days = ("--trail", "t", "--from", "2026-11-10", "--to", "2026-11-10")
    result = CliRunner().invoke(app, ["backtest", *days, *arguments])
    assert result.exit_code == Exit.USAGE, result.output
    return " ".join(result.stderr.split())


@pytest.mark.parametrize(
    "given",
    [
        *("", "[]", "{}", '{"queue_arn": "orders", "attributes": {"VisibilityTimeout": "1"}}'),
        f'{{"queue_arn": "{_make_arn("orders")}", "attributes": {{}}}}',
        f'{{"queue_arn": "{_make_arn("orders")}", "attributes": {{"VisibilityTimeout": "x"}}}}',
    ],
)
def test_backtest_refuses_a_malformed_queue_snapshot_before_reading_the_trail(
    tmp_path: Path, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "run_nightly_job", None)
    (tmp_path / "s.json").write_text(given)
    assert "--queues" in _read_refusal("--queues", str(tmp_path / "s.json"))


def test_backtest_without_spark_says_how_to_install_the_nightly_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nightly_run, "JOB_MODULE", "no_such_thing.job")
    snapshot = _write_snapshot(tmp_path / "s.json", ["orders"])
    message = _read_refusal("--queues", str(snapshot), "--out", str(tmp_path))
    assert (
        "no_such_thing is not installed: in a clone of Mendq, pip install '.[nightly]'" in message
    )


def test_backtest_refuses_a_missing_out_folder_before_reading_the_trail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "run_nightly_job", None)
    assert "is not a folder that you may write to" in _read_refusal("--out", str(tmp_path / "no"))


def test_backtest_refuses_a_wrong_java_home_before_reading_the_trail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(command, "run_nightly_job", None)
    assert f"there is no bin/java in JAVA_HOME, {tmp_path}: unset it" in _read_refusal()


def test_backtest_without_a_snapshot_reads_the_live_queues_and_changes_nothing(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    operator.aws.queue("orders", "heal")
    operator.aws.queue("left-alone", "off")
    job_arguments: list[str] = []

    def run(arguments: Iterable[str], *_: Any) -> tuple[Exit, BacktestRun]:
        job_arguments.extend(arguments)
        incidents = (_make_incident("orders"), _make_incident("left-alone"), _make_incident("gone"))
        return Exit.DONE, BacktestRun((), ("2026-11-10",), incidents)

    monkeypatch.setattr(command, "run_nightly_job", run)
    before = read_account_state(operator)
    days = ("--trail", "t", "--from", "2026-11-10", "--to", "2026-11-10", "--out", str(tmp_path))
    urls: list[str] = []
    note: Any = lambda params, **_: urls.append(params.get("QueueUrl", ""))  # noqa: E731
    operator.account.session.events.register("provide-client-params.sqs.*", note)
    report = operator.run_json("backtest", *days)
    assert not [url for url in urls if url.endswith("gone")], "a name of no queue is not asked"
    assert read_account_state(operator) == before
    assert job_arguments[-2:] == ["--account=123456789012", "--region=us-east-1"]
    assert report["modes"]["heal"]["would"] == {"does": 1, "leaves it alone": 1, "cannot say": 1}
    assert set(report["left_alone"]) == {_make_arn("left-alone"), _make_arn("gone")}


@pytest.mark.timeout(600)
def test_backtest_finds_the_incidents_of_an_independent_count_and_writes_a_private_page(
    tmp_path: Path,
) -> None:
    hostile = write_scene(tmp_path, 0, SceneSize(bursts=15, chained=20, records_of_largest_file=24))
    counted = count_incidents(hostile.trail, tmp_path / "no" / "cases")
    counted_incidents = list(chain.from_iterable(counted.incidents.values()))
    rows = [incident for incident in counted_incidents if not is_own_queue(incident["queue_arn"])]
    names = {row["queue_arn"].rpartition(":")[2] for row in rows if ":" in row["queue_arn"]}
    snapshot = _write_snapshot(tmp_path / "s.json", sorted(names))
    days = (hostile.days[0], hostile.days[-1])
    arguments = ("--trail", str(hostile.trail), "--from", str(days[0]), "--to", str(days[1]))
    more = ("--queues", str(snapshot), "--out", str(tmp_path), "--json")
    result = CliRunner().invoke(app, ["backtest", *arguments, *more])
    assert result.exit_code in {Exit.DONE, Exit.OVERRIDDEN}, result.output
    report = json.loads(result.stdout)
    written = {date.fromisoformat(day) for day in report["days"]}
    assert written >= set(hostile.days)
    counted_keys = sorted(_key(row) for row in rows if row["first_failure"].date() in written)
    reported_incidents = [entry["incident"] for entry in report["incidents"]]
    read = [
        incident | {"first_failure": datetime.fromisoformat(incident["first_failure"])}
        for incident in reported_incidents
    ]
    assert sorted(map(_key, read)) == counted_keys
    decided = [entry["incident"] for entry in report["incidents"] if entry["incident"]["evidence"]]
    assert len(decided) == sum(row["why"] == "unknown" for row in rows) > 0
    (page_path,) = map(Path, report["pages"])
    assert page_path.stat().st_mode & 0o777 == 0o600
    page = page_path.read_text()
    assert "Had Mendq been there" in page
    assert f"Had Mendq been there in mode heal: {len(counted_keys)} incidents" in page


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        row["queue_arn"],
        row["symptom"],
        row["first_failure"].replace(microsecond=0),
        row["failed_calls"],
    )


def test_backtest_says_what_to_install_if_the_report_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mendq.report.html_page", None)
    days = ["--trail", str(tmp_path), "--from", "2026-11-02", "--to", "2026-11-03"]
    result = CliRunner().invoke(app, ["backtest", *days, "--out", str(tmp_path), "--json"])
    assert result.exit_code == Exit.USAGE, result.output
    assert "pip install '.[nightly]'" in json.loads(result.stdout)["error"]["message"]
