"""Test `mendq show`, which prints all that is known about one case."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, cast

import pytest

from mendq.cases.view import HoldUp
from mendq.heal.batch import heal_findings
from mendq.model.case import Case
from tests.account.account import WORKER
from tests.cli.builders import Operator, change_cases
from tests.cli.scan.builders import make_source_and_dlq
from tests.heal.operators import load_newest_case, make_context, send_decision
from tests.heal.restoring import (
    EMPTIED,
    GRANTS,
    Analyzer,
    deny_calls,
    deploy_policy,
    make_pinned_queue,
)

PERSON = (
    "arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_AdministratorAccess_0123456789abcdef/"
    "alice.of.the.platform.team@example.com"
)
PLAN = "the visibility timeout of 30 s ends before its consumers are done"


def test_show_of_an_applied_case_has_timeline_evidence_plan_and_rollback_command(
    operator: Operator,
) -> None:
    case_id = operator.open_applied_case()
    case = operator.run_json("show", case_id)
    assert case["facts"]["VisibilityTimeout"] == "30"
    assert case["difference"] == ["VisibilityTimeout: 30 -> 45"]
    assert [transition["to"] for transition in case["transitions"]] == ["applied"]
    assert case["evidence"]["failed_calls"] == 3
    assert case["undo"] == [f"mendq rollback {case_id} --region us-east-1"]
    assert case["until"] is None
    output = operator.run("show", case_id).stdout
    for words in ("Timeline", "Evidence", "Plan", "30 s -> 45 s", f"mendq rollback {case_id}"):
        assert words in output
    assert "until" not in output


@pytest.fixture
def policy_proposal_id(operator: Operator) -> str:
    """The id of a case that proposes to restore a pinned policy."""
    queue = make_pinned_queue(operator.aws)
    deploy_policy(operator.aws, queue)
    operator.aws.later(minutes=25)
    deny_calls(operator.aws, queue)
    return load_newest_case(operator.aws).case_id


def make_analyzer(operator: Operator) -> Analyzer:
    """Let Access Analyzer answer that the policy adds access."""
    return Analyzer(cast("Any", operator.account), {"CheckNoNewAccess": "FAIL"})


def test_show_and_approve_of_a_policy_print_access_analyzers_check(
    operator: Operator, policy_proposal_id: str
) -> None:
    analyzer = make_analyzer(operator)
    output = operator.read_output("show", policy_proposal_id)
    assert "Access Analyzer, beside what stands: FAIL: as it is; so it is" in output
    assert f"Principal AWS: {WORKER} is new" in output
    assert [body for _, body in analyzer.asked] == [
        {
            "newPolicyDocument": GRANTS,
            "existingPolicyDocument": EMPTIED,
            "policyType": "RESOURCE_POLICY",
        }
    ]
    assert "so it is" in operator.run("approve", policy_proposal_id).output


def test_show_of_a_policy_proposal_says_so_if_access_analyzer_does_not_answer(
    operator: Operator, policy_proposal_id: str
) -> None:
    make_analyzer(operator).fails_with = 403
    document = operator.run_json("show", policy_proposal_id)
    assert "CheckNoNewAccess did not answer" in document["new_access"]


def test_show_of_a_declined_policy_proposal_does_not_ask_access_analyzer(
    operator: Operator, policy_proposal_id: str
) -> None:
    analyzer = make_analyzer(operator)
    send_decision(operator.aws, "decline", policy_proposal_id)
    assert operator.run_json("show", policy_proposal_id)["new_access"] == ""
    assert list(analyzer.asked) == []


def test_show_of_a_case_found_by_a_scan_says_that_no_call_failed(operator: Operator) -> None:
    dead = make_source_and_dlq(operator, "heal")
    operator.aws.later(minutes=5)
    findings = [{"queue_arn": dead, "symptom": "dlq_retention_too_short"}]
    heal_findings({"found": findings}, operator.aws.run())
    case = load_newest_case(operator.aws)
    evidence = _read_section(operator.run("show", case.case_id).stdout, "Evidence")
    assert evidence == f"seen by a scan at {case.evidence['first_at']}; no call failed"


def test_show_escapes_the_callers_user_agent_and_prints_it_once(operator: Operator) -> None:
    queue = operator.aws.queue(VisibilityTimeout="30")
    agent = {"userAgent": "sdk\x1b[2J", "sourceIPAddress": "192.0.2.7"}
    operator.aws.heal(operator.aws.late_deletes(queue, "a", "b", "c", **agent))
    output = operator.run("show", load_newest_case(operator.aws).case_id).stdout
    line = "InvalidParameterValueException from 192.0.2.7 with sdk\\x1b[2J"
    assert _read_section(output, "Evidence").count(line) == 1


def _read_section(output: str, heading: str) -> str:
    """Return the text below a heading on one line."""
    return " ".join(output.partition(f"\n{heading}\n")[2].partition("\n\n")[0].split())


def test_show_draws_no_bars_if_the_processing_time_is_not_known(operator: Operator) -> None:
    """A queue without a tag or a Lambda function has no known processing time."""
    output = operator.read_output("show", operator.open_applied_case("guessed.fifo"))
    assert "first failure" in output
    assert "Time that consumers need" not in output


def test_show_draws_bars_of_the_tagged_processing_time_and_of_both_timeouts(
    operator: Operator,
) -> None:
    arn = operator.aws.queue("orders.fifo", VisibilityTimeout="30")
    operator.aws.tag(arn, **{"mendq:max-processing-seconds": "40"})
    operator.aws.later(seconds=200)
    operator.aws.heal(operator.aws.late_deletes(arn, "x", "y", "z"))
    case = load_newest_case(operator.aws)
    tag = "tag mendq:max-processing-seconds"
    assert case.evidence["needs"] == [{"what": tag, "seconds": 40}]
    output = operator.run("show", case.case_id).stdout
    bars = [line.split() for line in output.splitlines() if line.endswith("=")]
    length_by_seconds = {words[-3]: len(words[-1]) for words in bars}
    assert length_by_seconds == {"40": 16, "30": 12, "60": 24}


def test_show_ends_its_list_of_times_with_the_applied_fix(operator: Operator) -> None:
    output = operator.run("show", operator.open_applied_case()).stdout
    assert re.findall(r"\S  +(\+\S+ s)  (\w[^:\n]*)", output)[-1][1] == "applied"


@pytest.mark.parametrize("word", ["approve", "decline"])
def test_show_has_both_the_reason_of_the_plan_and_the_persons_decision(
    operator: Operator, word: str
) -> None:
    case_id = operator.open_proposed_case()
    decision = f"a person {word}d"
    send_decision(operator.aws, word, case_id, PERSON)
    output = operator.run("show", case_id).stdout
    assert PLAN in _read_section(output, "Plan")
    for ended in (decision, "it can be approved"):
        assert ended not in _read_section(output, "Plan")
    for words in (PLAN, decision):
        assert words in _read_section(output, "Timeline (UTC)")
    assert f"  by {PERSON}\n" in output
    document = operator.run_json("show", case_id)
    assert decision in document["reason"]
    assert PLAN in document["plan_reason"]


def _roll_back_case(operator: Operator) -> str:
    """Open a case, apply its fix, and roll it back. Return the case's id."""
    case_id = operator.open_applied_case()
    operator.connect_lambdas()
    operator.run("rollback", case_id, "--yes")
    return case_id


def test_show_of_a_rolled_back_case_lists_the_steps_that_were_taken_back(
    operator: Operator,
) -> None:
    case_id = _roll_back_case(operator)
    plan = _read_section(operator.run("show", case_id).stdout, "Plan")
    assert plan.startswith("VisibilityTimeout: 30 s -> 45 s planned because")
    assert PLAN in plan
    case = operator.run_json("show", case_id)
    assert [(step["before"], step["after"]) for step in case["steps"]] == [("30", "45")]
    assert [(step["before"], step["after"]) for step in case["taken_back"]] == [("45", "30")]


def test_show_of_a_rolled_back_case_says_that_its_plans_wait_for_a_person(
    operator: Operator,
) -> None:
    case_id = _roll_back_case(operator)
    output = operator.read_output("show", case_id)
    assert f"its plans wait for a person since case {case_id}" in output


def test_cases_line_of_a_rolled_back_case_has_the_step_that_was_taken_back(
    operator: Operator,
) -> None:
    _roll_back_case(operator)
    assert "taken back: VisibilityTimeout: 45 s -> 30 s" in operator.read_output("cases")


def test_show_of_a_refused_case_has_the_code_and_the_next_step_and_no_plan(
    operator: Operator,
) -> None:
    """The next step names the tag to set, with its number."""
    tags = {"mendq:max-processing-seconds": "100", "mendq:max-visibility-seconds": "120"}
    arn = operator.aws.queue("orders.fifo", VisibilityTimeout="30")
    operator.aws.tag(arn, **tags)
    operator.aws.later(seconds=200)
    operator.aws.heal(operator.aws.late_deletes(arn, "a", "b", "c"))
    case_id = load_newest_case(operator.aws).case_id
    output = operator.read_output("show", case_id)
    assert "planned because" not in output
    assert "Not changed (over_ceiling): 150 s are needed" in output
    assert "Not changed (over_ceiling): 150 s are needed" in operator.read_output("cases")
    case = operator.run_json("show", case_id)
    assert (case["plan_reason"], case["steps"], case["taken_back"]) == ("", [], [])
    step = case["next_step"]
    assert (
        step == case["transitions"][-1]["next_step"] == operator.aws.transitions()[-1]["next_step"]
    )
    assert step["command"].endswith(" --tags mendq:max-visibility-seconds=150")
    assert step["runbook"] == "docs/runbooks/visibility_timeout_too_short.md"
    assert f"Next {step['sentence']} {step['command']} runbook: {step['runbook']}" in output
    ((_, page),) = operator.aws.pages()
    assert f"NEXT\n  {step['sentence']}\n  {step['command']}\n" in page


@pytest.mark.parametrize("columns", ["80", "40", ""])
def test_show_and_cases_never_break_a_policy_or_arn_across_lines(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    """People copy both. Columns "" stands for a pipe."""
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    else:
        monkeypatch.delenv("COLUMNS", raising=False)
    operator.open_applied_case()
    arn = f"arn:aws:iam::123456789012:role/{'deployer-of-orders/' * 6}x"
    policy = '{"Statement":[{"Effect":"Allow","Principal":{"AWS":"' + arn + '"}}]}'
    change_cases(operator.aws, reason=f"somebody has set {policy} for {arn} since, as it seems")
    for command in (("show", load_newest_case(operator.aws).case_id), ("cases",)):
        output = operator.run(*command).stdout
        assert policy in output
        assert f" {arn} " in output.replace("\n", " ")
    lines = [line.strip() for line in operator.run("cases").stdout.splitlines()]
    assert ("somebody has set" in lines) is bool(columns), "what can be broken is, and in no pipe"


@pytest.mark.parametrize(
    ("state", "words"),
    [("proposed", ("approve", "decline")), ("approved", ("decline",))],
    ids=["proposed", "approved"],
)
def test_show_of_a_waiting_case_has_its_deadline_and_only_the_possible_decisions(
    operator: Operator, state: str, words: tuple[str, ...]
) -> None:
    case_id = operator.open_proposed_case()
    if state == "approved":
        operator.aws.later(hours=3)
        send_decision(operator.aws, "approve", case_id)
    hours = timedelta(hours=operator.account.known.timing.proposal_hours)
    ends_at = load_newest_case(operator.aws).at + hours
    output = operator.run("show", case_id).stdout
    assert f"{state}, until {ends_at:%Y-%m-%d %H:%M} UTC" in output
    assert ("it can be approved until" in _read_section(output, "Plan")) is (state == "proposed")
    for word in ("approve", "decline", "close"):
        assert (f"  mendq {word} {case_id} --region us-east-1\n" in output) is (word in words)
    assert operator.run_json("show", case_id)["until"].startswith(f"{ends_at:%Y-%m-%dT%H:%M}")


def test_show_names_the_malformed_part_of_a_cases_evidence_and_exits(operator: Operator) -> None:
    case_id = operator.open_applied_case()
    wrong: dict[str, Any] = {"failed_calls": {"failed_calls": "3"}, "principals": {"principals": 5}}
    wrong["requests"] = {"requests": [{"source_ip": []}]}
    for says, evidence in {"its evidence": [], **wrong}.items():
        change_cases(operator.aws, evidence=evidence)
        result = operator.run("show", case_id)
        assert f"{says} is no" in " ".join(result.output.split())
        assert isinstance(result.exception, SystemExit)
    change_cases(operator.aws, evidence={})
    assert operator.run_json("show", case_id)["evidence"] == {}


def test_show_and_cases_escape_terminal_codes_in_the_reason_of_a_case(operator: Operator) -> None:
    case_id = operator.open_applied_case()
    change_cases(operator.aws, reason="\x1b[2J[bold]")
    for command in (("cases",), ("show", case_id)):
        output = operator.run(*command).stdout
        assert "\x1b[2J" not in output
        assert "[bold]" in output


@pytest.mark.parametrize(
    ("seconds", "outcome", "says"),
    [
        (45, "undone", "mendq rollback "),
        (60, "kept", "60 s, set since by somebody else"),
        (30, "nothing", "as before already"),
    ],
)
def test_show_offers_rollback_only_if_the_queue_still_has_the_value_that_mendq_wrote(
    operator: Operator, seconds: int, outcome: str, says: str
) -> None:
    case_id = operator.open_applied_case()
    operator.set_visibility_by_hand(seconds)
    case = operator.run_json("show", case_id)
    (standing,) = case["standing"]
    stands = [standing[key] for key in ("outcome", "now", "before")]
    assert stands == [outcome, str(seconds), "30"]
    output = operator.run("show", case_id).stdout
    assert says in _read_section(output, "Undo")
    assert ("rollback" in output) is bool(case["undo"]) is (outcome == "undone")


def test_show_offers_no_rollback_if_the_queue_was_deleted(operator: Operator) -> None:
    case_id = operator.open_applied_case()
    operator.aws.clients.sqs.delete_queue(QueueUrl=operator.aws.url("orders.fifo"))
    case = operator.run_json("show", case_id)
    assert (case["undo"], case["standing"]) == ([], [])
    assert (case["queue_exists"], case["difference"]) == (False, [])
    output = operator.run("show", case_id).stdout
    assert "is gone" in output
    assert "\nUndo\n" not in output
    assert "rollback" not in output


def test_show_offers_close_for_a_case_of_a_symptom_that_mendq_does_not_know(
    operator: Operator,
) -> None:
    case_id = operator.open_applied_case()
    assert "mendq close" not in operator.run("show", case_id).stdout
    change_cases(operator.aws, symptom="gone_since")
    section = _read_section(operator.run("show", case_id).stdout, "A person's word")
    assert section == f"mendq close {case_id} --region us-east-1"


@pytest.fixture
def frozen_case(operator: Operator) -> Case:
    """An approved case that a change freeze holds up."""
    case_id = operator.open_proposed_case()
    operator.aws.later(hours=3)
    send_decision(operator.aws, "approve", case_id)
    case = load_newest_case(operator.aws)
    hold_up = HoldUp(operator.aws.now, "frozen", "changes are frozen: Black Friday")
    make_context(operator.aws).open_cases.store_hold_up(case, hold_up)
    return case


def test_show_and_cases_report_what_holds_up_an_approved_case(
    operator: Operator, frozen_case: Case
) -> None:
    since = operator.aws.now
    line = f"held up since {since:%Y-%m-%d %H:%M} UTC: changes are frozen: Black Friday"
    for command in (("show", frozen_case.case_id), ("cases",)):
        assert line in " ".join(operator.run(*command).stdout.split())
    hold_up = operator.run_json("show", frozen_case.case_id)["held_up"]
    assert (hold_up["code"], hold_up["reason"]) == ("frozen", "changes are frozen: Black Friday")


def test_show_and_cases_report_no_hold_up_after_the_case_was_declined(
    operator: Operator, frozen_case: Case
) -> None:
    send_decision(operator.aws, "decline", frozen_case.case_id)
    assert operator.run_json("show", frozen_case.case_id)["held_up"] is None
    assert "held up" not in operator.run("cases").stdout
