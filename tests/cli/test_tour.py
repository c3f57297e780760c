"""The operator's tour: every command against the local account, as a shell would call it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local_account.process import LocalAccount
from local_account.where import ACCESS_KEY, REGION, SECRET_KEY
from tests.local_account.mendq_here import mendq_here
from tests.local_account.queues import Queue, eventually, fail_late, new_queue

pytestmark = pytest.mark.account
# Three queues at most may show a symptom here: a fourth would make it a mass symptom.
LEASE_SECONDS = 2
COLUMNS = 80


@dataclass(frozen=True)
class Shell:
    """A shell without a terminal, with credentials for the account."""

    account: LocalAccount

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "AWS_ENDPOINT_URL": self.account.endpoint_url,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
            "COLUMNS": f"{COLUMNS}",
        }
        done = subprocess.run(
            [sys.executable, "-m", "mendq.cli", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=180,
            check=False,
        )
        assert "Traceback" not in done.stderr
        return done

    def mendq(self, *arguments: str, code: int = 0) -> str:
        done = self.run(*arguments)
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        return done.stdout

    def text(self, *arguments: str, code: int = 0) -> str:
        """What people read: nothing cut; what is longer than a line is a name or a command."""
        shown = self.mendq(*arguments, code=code)
        assert "..." not in shown
        assert "\N{HORIZONTAL ELLIPSIS}" not in shown
        long = (each.strip() for each in shown.splitlines() if len(each.rstrip()) > COLUMNS)
        assert not [
            each for each in long if not each.startswith(("arn:", "by arn:", "aws ", "mendq "))
        ]
        return shown

    @property
    def person(self) -> str:
        """The ARN of whoever sits there."""
        arn: str = self.account.client("sts").get_caller_identity()["Arn"]
        return arn

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.mendq(*arguments, "--json", code=code))

    def case_of(self, queue: Queue) -> dict[str, Any] | None:
        """Asked until there is one."""
        cases = json.loads(mendq_here(self.account, "cases", "--json").stdout)
        return next((each for each in cases if each["queue_arn"] == queue.arn), None)

    def case_in(self, queue: Queue, state: str) -> str:
        """The id of the queue's case, as soon as it is in that state."""
        eventually(lambda: (self.case_of(queue) or {}).get("state") == state)
        case = self.case_of(queue)
        assert case is not None
        return str(case["case_id"])


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    with LocalAccount() as running:
        yield Shell(running)


def _visibility(queue: Queue) -> int:
    return int(queue.attributes()["VisibilityTimeout"])


def _failing(shell: Shell, mode: str) -> Queue:
    queue = new_queue(
        shell.account, fifo=True, tags={"mendq": mode}, VisibilityTimeout=str(LEASE_SECONDS)
    )
    fail_late(queue, times=4)
    return queue


def test_a_proposal_is_seen_approved_and_taken_back(shell: Shell, tmp_path: Path) -> None:
    queue = _failing(shell, "propose")
    case_id = shell.case_in(queue, "proposed")
    case = shell.json("show", case_id)
    until = f"until {case['until'][:10]} {case['until'][11:16]} UTC"
    for words in (case_id, queue.arn.rpartition(":")[2], until, case["reason"]):
        assert words in _on_one_line(shell.text("cases"))
    shown = shell.text("show", case_id)
    assert f"proposed, {until}" in shown
    assert f"  mendq approve {case_id} --region {REGION}\n" in shown
    assert f"{queue.arn.rpartition(':')[2]}.json" in shell.json("export", str(tmp_path))["written"]
    shell.mendq("approve", case_id, code=2)
    shell.mendq("freeze", "a test", "--yes")
    shell.mendq("thaw", "--yes")
    assert _visibility(queue) == LEASE_SECONDS
    assert shell.json("approve", case_id, "--yes")["state"] == "applied"
    raised = _visibility(queue)
    assert raised > LEASE_SECONDS
    change = f"VisibilityTimeout: {raised} s -> {LEASE_SECONDS} s"
    assert f"undone  {change}" in shell.text("rollback", case_id, "--dry-run")
    assert _visibility(queue) == raised
    shell.json("rollback", case_id, "--yes")
    assert _visibility(queue) == LEASE_SECONDS
    shell.mendq("approve", case_id, "--yes", code=1)
    states = [each["to"] for each in shell.json("show", case_id)["transitions"]]
    assert states == ["proposed", "approved", "applied", "rolled_back"]
    shown = shell.text("show", case_id)
    assert [line.split()[2] for line in shown.splitlines() if line.startswith("20")] == states
    assert shown.count(f"  by {shell.person}\n") == 2  # approved and rolled back
    assert "Rolled back already" in shell.text("rollback", case_id)


def _on_one_line(shown: str) -> str:
    return " ".join(shown.split())


def test_a_drill_is_timed_and_leaves_no_queue(shell: Shell) -> None:
    done = shell.json("drill", "--yes", "--minutes", "2")
    assert done["done"], done
    assert done["stages"][0]["stage"] == "calls failed"
    stages = [each["stage"].partition(":")[0] for each in done["stages"]]
    assert stages[-3:] == ["read back", "fix taken back", "case ended"]
    assert done["stages"][-2]["stage"] == f"fix taken back: {LEASE_SECONDS} s"
    ended = shell.json("show", done["case_id"])
    assert ended["state"] == done["ended_as"] == "rolled_back"
    assert done["case_id"] not in [each["case_id"] for each in shell.json("cases", "--open")]
    sqs = shell.account.client("sqs")
    assert not sqs.list_queues(QueueNamePrefix="mendq-drill").get("QueueUrls")


def test_a_doctor_sees_the_deployment_and_the_trail(shell: Shell) -> None:
    queue = new_queue(shell.account, fifo=True, tags={"mendq": "observe"})
    eventually(lambda: _check(shell, "heartbeat")["status"] == "ok", seconds=150, every_seconds=2)
    found = shell.json("doctor")
    assert [each for each in found["checks"] if each["status"] == "unknown"] == []
    assert queue.arn in found["managed_queues"]
    assert found["outside_selectors"] == []
    sights = {each["symptom"]: each for each in found["symptoms"]}
    assert queue.arn in sights["visibility_timeout_too_short"]["visible"]
    assert not any(queue.arn in {**each["blind"], **each["partly"]} for each in sights.values())
    shown = shell.text("doctor")
    assert "functions: " in shown
    assert "topic urgent: nobody is subscribed" in shown
    assert "-> set notifications.urgent and deploy" in shown
    for each in found["checks"]:
        assert each["status"] == "ok" or f"{each['check']}: {each['says']}" in _on_one_line(shown)
    for symptom in sights:
        assert symptom in shown


def _check(shell: Shell, name: str) -> dict[str, Any]:
    """Until the follow-up has run once, the doctor finds that something fails."""
    found = json.loads(mendq_here(shell.account, "doctor", "--json").stdout)
    (check,) = (each for each in found["checks"] if each["check"] == name)
    return dict(check)
