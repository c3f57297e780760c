"""How a story ends: the night over its trail files and cases, the week, the report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.status import Status
from rich.text import Text

from functions.healing.paging import Severity
from local_account.demo import night_picture
from local_account.demo.farewell import MAIL, REPORT
from local_account.demo.mailbox import Mailbox, Message
from local_account.demo.night import (
    PATIENCE_SECONDS,
    NightFailed,
    Nights,
    monday_after,
    night_after,
)
from local_account.demo.watching import Watch
from local_account.process import LocalAccount

MAIL_SECONDS = 1
LOOK_EVERY_SECONDS = 0.2
# Whom the demo's account mails its report: SES here sends to nobody.
SETTINGS = {"report": {"sender": "mendq@example.com", "recipients": ["reader@example.com"]}}


@dataclass(frozen=True)
class Ending:
    """What the night made of the story."""

    incidents: list[dict[str, Any]]
    verdict: Message
    report: Path
    mail: Path


def tell(
    watch: Watch, mailbox: Mailbox, account: LocalAccount, console: Console, folder: Path
) -> Ending:
    """Run the night and the week of the story, copy page and mail there; raise NightFailed."""
    console.print(Text("the night, over the account's own trail files and cases", style="bold"))
    outputs = account.outputs
    failed_at = [at for each in watch.queues.values() for at in each.failures_at]
    # A night is its own day and the day before: a story that went on over a midnight is in it.
    last = max(failed_at, default=datetime.now(UTC))
    first = min(failed_at, default=last)
    with console.status("the trail's files") as status:
        nights = Nights(account, outputs, lambda what: status.update(_waiting(what)))
        failing = (each for each in watch.queues.values() if each.failed_calls)
        nights.until_trail_holds({each.queue_arn: each.failed_calls for each in failing})
        console.print(night_picture.run_ended(nights.run("night", night_after(last))))
        console.print(night_picture.run_ended(nights.run("week", monday_after(first))))
        verdict = _verdict(mailbox, status)
        report = _copied(account, outputs, folder / REPORT)
        mail = _mailed(account, folder / MAIL, status)
    incidents = nights.incidents()
    console.print(night_picture.incident_table(incidents, console.width))
    console.print(night_picture.verdict(verdict.text))
    console.print(
        f"That page, copied out of this account, which ends with the demo: {report}\n", markup=False
    )
    return Ending(incidents, verdict, report, mail)


def _waiting(what: str) -> Text:
    return Text(f"waiting for {what}", style="dim")


def _verdict(mailbox: Mailbox, status: Status) -> Message:
    """The message that deliver_report sends when the week's summary lands."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    status.update(_waiting("the report, which the summary's arrival starts"))
    while time.monotonic() < deadline:
        for message in mailbox.look(MAIL_SECONDS):
            if message.severity is Severity.INFO and message.case_id is None:
                return message
    raise NightFailed(f"no verdict came within {PATIENCE_SECONDS:.0f} s")


def _mailed(account: LocalAccount, copy: Path, status: Status) -> Path:
    """The one mail that SES was given, whole."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    status.update(_waiting("the report's mail"))
    while not (mails := account.mails):
        if time.monotonic() > deadline:
            raise NightFailed(f"no mail came within {PATIENCE_SECONDS:.0f} s")
        time.sleep(LOOK_EVERY_SECONDS)
    if len(mails) != 1:
        raise NightFailed(f"the report was mailed {len(mails)} times, expected once")
    copy.write_bytes(mails[0]["raw"].encode())
    return copy


def _copied(account: LocalAccount, outputs: Mapping[str, str], copy: Path) -> Path:
    """The one page in the report bucket, for a browser here."""
    s3, bucket = account.client("s3"), outputs["ReportBucket"]
    listed = s3.list_objects_v2(Bucket=bucket, Prefix="report/").get("Contents", [])
    pages = [each["Key"] for each in listed if each["Key"].endswith("/report.html")]
    if len(pages) != 1:
        raise NightFailed(f"{len(pages)} pages lie in the report bucket, expected one")
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(s3.get_object(Bucket=bucket, Key=pages[0])["Body"].read())
    return copy
