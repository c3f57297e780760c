"""`mendq scan --dry-run`: what it says, and that nothing anywhere is different afterwards."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from mendq.cases.finding import Finding
from mendq.cli.exit_codes import Exit
from mendq.cli.look.dry_run import BY_NAME, WouldChange, WouldDo, looking
from mendq.cli.look.scan import findings_table
from tests.cli.conftest import Operator
from tests.cli.scan.conftest import everything, finding, pair


def test_the_lambda_scans_not_the_command(operator: Operator) -> None:
    result = operator.mendq("scan")
    assert result.exit_code == Exit.USAGE
    assert "--dry-run" in result.stderr
    assert operator.account.invoked == []


@pytest.mark.parametrize(
    ("mode", "would"), [("observe", "only notes"), ("propose", "proposes"), ("heal", "does")]
)
def test_what_it_says_is_what_the_mode_lets_it_do_and_nothing_is_done(
    operator: Operator, mode: str, would: str
) -> None:
    dead = pair(operator, mode)
    off = operator.aws.queue("mine", "off")
    before = everything(operator)
    said = operator.json("scan", "--dry-run")
    assert everything(operator) == before
    assert operator.account.invoked == []
    found = finding(said["findings"], dead, "dlq_retention_too_short")
    assert found["would"] == would
    assert found["steps"][0].startswith("MessageRetentionPeriod: 345600 s")
    assert said["queues_scanned"] == 2
    assert off not in {each["queue_arn"] for each in said["findings"]}
    assert said["not_looked_at"] == {}


def test_an_account_without_managed_queues_has_no_findings(operator: Operator) -> None:
    result = operator.mendq("scan", "--dry-run")
    assert result.exit_code == Exit.DONE
    assert "no queue is managed, so none was looked at" in result.stdout
    assert "nothing was found" not in result.stdout
    assert "nothing was changed" in result.stdout


def _shown(found: dict[Finding, WouldDo], columns: int) -> list[str]:
    console = Console(width=columns, no_color=True, force_terminal=False)
    with console.capture() as captured:
        console.print(findings_table(found))
    return captured.get().splitlines()


@given(st.integers(80, 120), st.integers(1, 80))
def test_no_line_is_wider_than_the_terminal(columns: int, name_length: int) -> None:
    arn = f"arn:aws:sqs:us-east-1:123456789012:{'q' * name_length}"
    found = {
        Finding(arn, name, "because " * 20): WouldDo("proposes", ("x" * 150,)) for name in BY_NAME
    }
    assert max(map(len, _shown(found, columns))) <= columns


def test_queues_of_a_fault_that_is_only_reported_are_one_row() -> None:
    arns = [f"arn:aws:sqs:us-east-1:123456789012:q{n:02}" for n in range(6)]
    found = {Finding(arn, "tls_not_enforced", "why"): WouldDo("only reports it") for arn in arns}
    found |= {Finding(arn, "consumer_failing", "why"): WouldDo("asks a person") for arn in arns}
    shown = "\n".join(_shown(found, 100))
    assert shown.count("tls_not_enforced") == 1
    assert shown.count("consumer_failing") == len(arns)
    assert shown.index("consumer_failing") < shown.index("tls_not_enforced")


def test_what_a_queue_is_called_does_nothing_to_the_terminal() -> None:
    arn = "arn:aws:sqs:us-east-1:123456789012:orders"
    found = {Finding(arn, "consumer_failing", "evil \x1b[31m\nline"): WouldDo("asks a person")}
    shown = _shown(found, 100)
    assert "\x1b" not in "".join(shown)


def test_what_changes_something_is_never_sent(operator: Operator) -> None:
    clients, queue = looking(operator.account.session), operator.aws.queue("orders")
    url = operator.aws.url(queue)
    with pytest.raises(WouldChange, match="SetQueueAttributes"):
        clients.sqs_for_writing.set_queue_attributes(
            QueueUrl=url, Attributes={"VisibilityTimeout": "1"}
        )
    with pytest.raises(WouldChange, match="ReceiveMessage"):
        clients.sqs.receive_message(QueueUrl=url)
    with pytest.raises(WouldChange, match="PutItem"):
        clients.dynamodb.put_item(TableName="case_store", Item={"pk": {"S": "a"}, "sk": {"S": "b"}})
    with pytest.raises(WouldChange, match="Invoke"):
        clients.functions.invoke(FunctionName="heal")
    assert operator.aws.visibility(queue) == 30
    assert operator.aws.case_store_items() == {}
