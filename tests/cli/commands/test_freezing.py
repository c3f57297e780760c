from __future__ import annotations

from tests.cli.conftest import Operator


def _frozen(operator: Operator) -> str | None:
    arn = "arn:aws:sqs:us-east-1:123456789012:any.fifo"
    return operator.account.case_store.look(arn, "visibility_timeout_too_short", ()).frozen


def test_it_is_frozen_and_thawed_as_the_guardrails_read_it_and_once_it_is_confirmed(
    operator: Operator,
) -> None:
    assert operator.mendq("freeze", "deploying").exit_code == 2
    assert _frozen(operator) is None
    assert operator.json("thaw") == {"frozen": False, "was": None}
    said = operator.json("freeze", "deploying", "--yes")
    assert (said["frozen"], said["reason"]) == (True, "deploying")
    assert said["by"].startswith("arn:aws:")
    assert operator.mendq("thaw").exit_code == 2
    assert _frozen(operator) == "deploying"
    said = operator.json("thaw", "--yes")
    assert (said["frozen"], said["was"]["reason"]) == (False, "deploying")
    assert _frozen(operator) is None


def test_a_reason_is_one_line_of_bounded_length(operator: Operator) -> None:
    said = operator.json("freeze", "up\nand\x1b[2J down " + "x" * 9_000, "--yes")
    assert said["reason"].startswith("up and\\x1b[2J down xxx")
    assert len(said["reason"]) == 500
    assert _frozen(operator) == said["reason"]
    assert operator.json("freeze", " \n", "--yes")["reason"] == "no reason given"
