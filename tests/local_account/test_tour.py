"""The operator's tour: the commands of a case's life, a drill and the doctor, on real queues."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local_account.process import LocalAccount
from local_account.where import REGION
from tests.local_account.mendq_here import mendq_here, open_proposal
from tests.local_account.queues import Queue, eventually, new_queue

pytestmark = pytest.mark.account
TIMEOUT_SECONDS = 2
COLUMNS = 80


@dataclass(frozen=True)
class Shell:
    """A shell without a terminal, with credentials for the account."""

    account: LocalAccount

    def mendq(self, *arguments: str, code: int | None = 0) -> str:
        done = mendq_here(self.account, *arguments)
        assert code in (None, done.exit_code), (arguments, done.output)
        return done.stdout

    def text(self, *arguments: str, code: int | None = 0) -> str:
        """Return the text output. No word is cut, and only names and commands exceed a line."""
        shown = self.mendq(*arguments, code=code)
        assert not {"...", "\N{HORIZONTAL ELLIPSIS}"} & {*shown.split()}
        long = (line.strip() for line in shown.splitlines() if len(line.rstrip()) > COLUMNS)
        whole = ("arn:", "by arn:", "aws ", "mendq ")
        assert not [line for line in long if not line.startswith(whole)]
        return shown

    def json(self, *arguments: str, code: int | None = 0) -> Any:
        return json.loads(self.mendq(*arguments, "--json", code=code))


@pytest.fixture
def shell(account: LocalAccount) -> Shell:
    return Shell(account)


def _on_one_line(shown: str) -> str:
    return " ".join(shown.split())


def _visibility(queue: Queue) -> int:
    return int(queue.attributes()["VisibilityTimeout"])


def test_operator_lists_shows_exports_approves_and_rolls_back_a_proposal(
    shell: Shell, tmp_path: Path
) -> None:
    visibility = {"VisibilityTimeout": f"{TIMEOUT_SECONDS}"}
    queue = new_queue(shell.account, fifo=True, tags={"mendq": "propose"}, **visibility)
    case_id = open_proposal(shell.account, queue)
    name = queue.arn.rpartition(":")[2]
    case = shell.json("show", case_id)
    until = f"until {case['until'][:10]} {case['until'][11:16]} UTC"
    for words in (case_id, name, until, case["reason"]):
        assert words in _on_one_line(shell.text("cases"))
    shown = shell.text("show", case_id)
    assert f"proposed, {until}" in shown
    assert f"  mendq approve {case_id} --region {REGION}\n" in shown
    assert f"{name}.json" in shell.json("export", str(tmp_path))["written"]
    shell.mendq("approve", case_id, code=2)
    shell.mendq("freeze", "a test", "--yes")
    shell.mendq("thaw", "--yes")
    assert _visibility(queue) == TIMEOUT_SECONDS
    assert shell.json("approve", case_id, "--yes")["state"] == "applied"
    raised = _visibility(queue)
    assert raised > TIMEOUT_SECONDS
    change = f"VisibilityTimeout: {raised} s -> {TIMEOUT_SECONDS} s"
    assert f"undone  {change}" in shell.text("rollback", case_id, "--dry-run")
    assert _visibility(queue) == raised
    shell.json("rollback", case_id, "--yes")
    assert _visibility(queue) == TIMEOUT_SECONDS
    shown = shell.text("show", case_id)
    states = [transition["to"] for transition in shell.json("show", case_id)["transitions"]]
    assert states == ["proposed", "approved", "applied", "rolled_back"]
    person = shell.account.client("sts").get_caller_identity()["Arn"]
    assert shown.count(f"  by {person}\n") == 2  # approved and rolled back


def test_drill_reports_its_stages_and_leaves_no_case_open_and_no_queue(shell: Shell) -> None:
    done = shell.json("drill", "--yes", "--minutes", "2")
    assert (done["done"], done["ended_as"]) == (True, "rolled_back"), done
    stages = [stage["stage"] for stage in done["stages"]]
    assert stages[0].startswith("calls failed")
    assert stages[-2] == f"fix taken back: {TIMEOUT_SECONDS} s"
    assert done["case_id"] not in [case["case_id"] for case in shell.json("cases", "--open")]
    sqs = shell.account.client("sqs")
    assert not sqs.list_queues(QueueNamePrefix="mendq-drill").get("QueueUrls")


def test_doctor_reports_deployed_functions_and_queues_visible_in_the_trail(shell: Shell) -> None:
    queue = new_queue(shell.account, fifo=True, tags={"mendq": "observe"})

    def beats() -> bool:
        """Until the follow-up has run once, the doctor finds that something fails."""
        checks = shell.json("doctor", code=None)["checks"]
        return {"ok"} == {check["status"] for check in checks if check["check"] == "heartbeat"}

    eventually(beats, seconds=600, every_seconds=15)
    document = shell.json("doctor", code=None)
    shown = _on_one_line(shell.text("doctor", "--verbose", code=None))
    assert document["outside_selectors"] == []
    sights = {symptom["symptom"]: symptom for symptom in document["symptoms"]}
    assert queue.arn in sights["visibility_timeout_too_short"]["visible"]
    assert not any(queue.arn in {**sight["blind"], **sight["partly"]} for sight in sights.values())
    for said in ("functions: ", *sights):
        assert said in shown
