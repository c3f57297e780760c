"""What the nightly job makes of trails, cases and scans; and a week of what it made."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark.sql import SparkSession

from analytics import job
from analytics.session import session
from tests.analytics.authored import ACCOUNT, QUEUE_ARN, REGION, Account, burst, transition
from tests.analytics.authored import record as failed_call
from tests.analytics.nasty_files import readable, unreadable
from tests.before.stored import NOT_HERE
from tests.real_records import detonations

# They test the bounds of the reader, and take longer than all others.
_TOO_LARGE = ("bomb", "lying-bomb", "values", "long-string", "deep", "many")
_EVENT = re.compile(r"event-\d+")
_TABLES = ("incidents", "failed_calls", "quality")


def record() -> Any:
    """The tables of some days and their week, of several accounts; what the job says."""
    spark = session()
    spark.conf.set("spark.sql.codegen.wholeStage", value=False)
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    try:
        return {
            "authored": _ran(spark, _authored, "11-09", "11-13"),
            "hostile": _ran(spark, _hostile, "11-10", "11-11"),
            "recorded": _recorded(spark),
        }
    finally:
        spark.sparkContext.setLogLevel("OFF")  # what is still under way is nobody's any more
        spark.stop()


def _queue(name: str, **fields: Any) -> dict[str, Any]:
    return {"resources": [{"type": "AWS::SQS::Queue", "ARN": f"{QUEUE_ARN}-{name}"}], **fields}


_CODES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("denied", {"eventName": "SendMessage", "errorCode": "AccessDenied"}),
    ("kms", {"eventName": "SendMessage", "errorCode": "KmsThrottled"}),
    ("caller", {"eventName": "SendMessageBatch", "errorCode": "EmptyBatchRequest"}),
    ("unknown", {"errorCode": "Teapot"}),
    ("gone", {"errorCode": "AWS.SimpleQueueService.NonExistentQueue"}),
    ("observed", {}),
    ("refused", {}),
    ("escalated", {}),
    ("rolled", {}),
)


def _authored(account: Account) -> None:
    """Bursts of many kinds, over midnight, late and twice; and what became of some of them."""
    account.publish("11-09", burst("11-09 09:00"))
    account.publish("11-10", burst("11-09 23:40", calls=6, seconds=600))
    for name, fields in _CODES:
        account.publish("11-11", burst("11-11 10:00", **_queue(name, **fields)))
    account.publish("11-12", burst("11-12 10:00", role_arn=_own_role("heal"), **_queue("own")))
    account.publish("11-12", burst("11-12 11:00", role_arn=_own_role("probe"), **_queue("probe")))
    twice = failed_call("11-12 18:00", **_queue("twice"))
    account.publish("11-12", [twice])
    account.publish("11-13", [twice, *burst("11-12 12:00", **_queue("late"))])
    account.publish("11-13", burst("11-13 08:00", calls=40, seconds=30, **_queue("many")))
    step = {"attribute": "VisibilityTimeout", "before": "30", "after": "45"}
    seen = {"first_at": "11-09 09:00", "last_at": "11-09 09:02"}
    account.record_transitions(
        transition(1, "applied", "11-09 09:03", **seen, steps=[step]),
        transition(2, "verified", "11-09 09:30", **seen, steps=[step]),
        *_cases(),
    )


def _own_role(purpose: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:role/mendq-{purpose}-{REGION}"


def _cases() -> list[dict[str, Any]]:
    seen = {"first_at": "11-11 10:00", "last_at": "11-11 10:02"}
    found = []
    for n, (name, states) in enumerate(
        (
            ("observed", ("observed",)),
            ("refused", ("refused",)),
            ("escalated", ("proposed", "expired")),
            ("rolled", ("applied", "rolled_back")),
        )
    ):
        for number, state in enumerate(states, 1):
            found.append(
                transition(number, state, f"11-11 10:0{2 + number}", **seen)
                | {
                    "case_id": f"visibility_timeout_too_short-{n:012}",
                    "queue_arn": f"{QUEUE_ARN}-{name}",
                    "reason": f"{name} because",
                    "notified": state == "proposed",
                }
            )
    return found


def _hostile(account: Account) -> None:
    """Files as attackers, broken deliveries and pedants write them."""
    for name, written in readable().items():
        if name not in _TOO_LARGE:
            account.publish("11-10", written, name=f"readable-{name}.json.gz")
    for name, (written, _) in unreadable().items():
        if name not in _TOO_LARGE:
            account.publish("11-11", written, name=f"unreadable-{name}.json.gz")
    account.publish("11-10", b"none of ours", kind="CloudTrail-Digest")
    account.publish("11-10", b"none of ours", name="notes.txt")


def _recorded(spark: SparkSession) -> Any:
    """Of records that nobody here wrote, where they are here: none is a failed call of SQS."""
    found = detonations()
    if not found:
        return NOT_HERE
    return _ran(spark, lambda account: account.publish("11-10", found), "11-10", "11-10")


def _ran(
    spark: SparkSession, made: Callable[[Account], object], first: str, last: str
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="mendq-") as folder:
        account = Account(Path(folder))
        made(account)
        account.publish("10-01", [])
        account.cases.mkdir(exist_ok=True)
        days = ["backfill", "--from", f"2026-{first}", "--to", f"2026-{last}"]
        exits = [_exit(spark, account, days)]
        exits.append(_exit(spark, account, ["weekly", "--week", "2026-W46"]))
        tables = {
            f"{table} {path.parent.name}": _rows(account, table, path.parent.name)
            for table in _TABLES
            for path in sorted((account.out / table).glob("dt=*/*.parquet"))
        }
        nightly_runs = {
            path.parent.name: account.nightly(path.parent.name.removeprefix("dt=2026-"))
            for path in sorted((account.out / "nightly").glob("dt=*/*.json"))
        }
        week = json.loads((account.out / "summary/week=2026-W46/summary.json").read_text())
        del week["made_at"]
        files = [path.relative_to(account.out).as_posix() for path in account.out.rglob("*.*")]
        return _scrubbed(
            folder,
            {
                "exits": exits,
                "tables": tables,
                "nightly_runs": nightly_runs,
                "week": week,
                "files": sorted(each for each in files if not each.endswith(".crc")),
            },
        )


def _exit(spark: SparkSession, account: Account, words: list[str]) -> Any:
    roots = [f"--{name}={account.folder / name}" for name in ("trail", "cases", "out")]
    if words[0] == "weekly":
        roots = roots[1:]
    with patch("sys.stdout", StringIO()) as said:
        code = job.run(job.parse([*words, *roots]), spark)
    return {"exit": code, "says": said.getvalue().splitlines()}


def _rows(account: Account, table: str, day: str) -> list[Mapping[str, Any]]:
    rows = json.dumps(account.rows(table, day.removeprefix("dt=2026-")), default=_spelled)
    found: list[Mapping[str, Any]] = json.loads(_EVENT.sub("event", rows))
    return sorted(found, key=lambda each: json.dumps(each, sort_keys=True))


def _scrubbed(folder: str, value: Any) -> dict[str, Any]:
    text = json.dumps(value, default=_spelled).replace(folder, "<folder>")
    found: dict[str, Any] = json.loads(text)
    return found


def _spelled(value: object) -> str:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value)
