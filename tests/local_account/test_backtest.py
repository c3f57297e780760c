"""`mendq backtest` over the account's own bucket, with its queues as they stand."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from local_account.process import LocalAccount
from tests.local_account.mendq_here import mendq_here
from tests.local_account.queues import eventually, fail_late, new_queue
from tests.local_account.trail import TrailFiles


@pytest.mark.account
@pytest.mark.long
@pytest.mark.timeout(600)
def test_backtest_of_a_trail_bucket_reports_the_late_deletes_and_respects_the_off_tag(
    account: LocalAccount, tmp_path: Path
) -> None:
    first = f"{datetime.now(UTC):%Y-%m-%d}"
    queue = new_queue(account, fifo=True, tags={"mendq": "off"})
    files = TrailFiles(account)
    fail_late(queue, times=4)
    eventually(lambda: len(files.records(queue, "DeleteMessage")) >= 4, every_seconds=0.5)
    last = f"{datetime.now(UTC):%Y-%m-%d}"
    days = ("--trail", f"s3://{account.outputs['TrailBucket']}", "--from", first, "--to", last)
    ran = mendq_here(account, "backtest", *days, "--out", str(tmp_path), "--json")
    assert ran.exit_code == 0, ran.output
    (found,) = (
        incident
        for incident in json.loads(ran.stdout)["incidents"]
        if incident["incident"]["queue_arn"] == queue.arn
    )
    assert found["incident"]["symptom"] == "visibility_timeout_too_short"
    # What would be done about a queue hangs on the other tests' queues, but not about this one.
    would = found["answers"]["heal"]["would"]
    assert (would["would"], would["why"]) == ("leaves it alone", "its tag `mendq` is `off`")
