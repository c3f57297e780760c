"""What each kind of page says, and to whom it says nothing."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from infra.synthesis import STACK_NAME
from mendq.catalogue import CATALOGUE
from mendq.cli.__main__ import COMMANDS
from mendq.model.case import State
from mendq.model.steps import SetVisibilityTimeout
from mendq.notifications import notification
from mendq.notifications.queue_lines import Change, Known
from tests.model.cases_to_page import ATTRIBUTES, CASE, NOW, STEP, notified, section

LONG_NAME = "q" * 75 + ".fifo"
LONG_ARN = f"arn:aws:sqs:us-east-1:123456789012:{LONG_NAME}"
LONGEST_SYMPTOM = max((each.name for each in CATALOGUE), key=len)
NOW_ = "QUEUE NOW"
DONE = {**STEP, "before": "20", "after": "30"}


@pytest.mark.parametrize("state", sorted(set(State) - notification.NOTIFIED))
def test_other_states_are_never_paged(state: State) -> None:
    with pytest.raises(ValueError, match="never paged"):
        notified(state=state)


@pytest.mark.parametrize("state", sorted(notification.NOTIFIED))
def test_the_first_line_is_enough_for_a_phone(state: State) -> None:
    short, long = (
        notified(state=state, symptom=LONGEST_SYMPTOM, queue_arn=arn).body.splitlines()[0]
        for arn in (CASE.queue_arn, LONG_ARN)
    )
    for line, name in ((short, "orders.fifo"), (long, LONG_NAME)):
        assert line.startswith(f"{name}: visibility timeout too short. ")
        assert len(line) <= notification.MOST_FIRST_LINE
    assert "please" in short or "approve it" in short
    ask = long.rpartition(". ")[2]
    assert ask in {"Approve?", "Look at it", "Please act", "Choose one"}


@pytest.mark.parametrize("state", sorted(notification.NOTIFIED))
def test_a_subject_keeps_both_ends_of_a_long_name(state: State) -> None:
    subject = notified(state=state, symptom=LONGEST_SYMPTOM, queue_arn=LONG_ARN).subject
    assert len(subject) == notification.MOST_SUBJECT
    assert subject.startswith(f"Mendq {state}: visibility timeout too short on qqq")
    assert subject.endswith("qqq.fifo")
    assert (
        notified(state=state).subject
        == f"Mendq {state}: visibility timeout too short on orders.fifo"
    )


def test_the_evidence() -> None:
    assert section(notified().body, "EVIDENCE") == [
        "3 failed calls: DeleteMessage",
        "from 2026-11-16 09:20:11 UTC, request request-1",
        "to   2026-11-16 09:29:58 UTC, request request-9",
        "by arn:aws:iam::123456789012:role/orders-worker",
    ]


def test_a_configuration_finding_has_no_calls() -> None:
    (line,) = section(notified(evidence={}).body, "EVIDENCE")
    assert line.startswith("no failed call")


def test_of_the_facts_only_those_that_matter() -> None:
    assert section(notified().body, "QUEUE NOW") == [
        "VisibilityTimeout: 30 s",
        "MessageRetentionPeriod: 345600 s (4 d)",
        "ApproximateNumberOfMessages: 812",
        "tag mendq = propose",
    ]
    steps = ({"attribute": "DelaySeconds", "before": "0", "after": "5"},)
    assert "DelaySeconds: 0 s" in section(notified(steps=steps).body, "QUEUE NOW")


def test_what_a_symptom_asks_for_is_shown_set_or_not() -> None:
    policy = '{"Statement": [{"Sid": "let the shop send", "Effect": "Allow"}]}'
    beside = {"attributes": {**ATTRIBUTES, "Policy": policy}, "shown": ("Policy", "KmsMasterKeyId")}
    assert section(notified(beside).body, "QUEUE NOW")[:2] == [
        'Policy: {"Statement":[{"Sid":"let the shop send","Effect":"Allow"}]}',
        "KmsMasterKeyId: not set",
    ]
    unasked = section(notified({**beside, "shown": ()}).body, "QUEUE NOW")
    assert not any(line.startswith(("Policy", "Kms")) for line in unasked)


def test_a_long_policy_is_cut_and_a_queue_that_is_gone_shows_none() -> None:
    policy = json.dumps({"Statement": [{"Sid": "x" * 3_000}]})
    (line, *_) = section(
        notified({"attributes": {"Policy": policy}, "shown": ["Policy"]}).body, NOW_
    )
    assert line.startswith('Policy: {"Statement":[{"Sid":"xxx')
    assert line.endswith("x...")
    assert 900 < len(line) < 1_100
    (gone,) = section(notified({"attributes": {}, "tags": {}, "shown": ["Policy"]}).body, NOW_)
    assert gone.startswith("the queue is gone")


def test_a_queue_that_is_gone_shows_how_it_last_stood() -> None:
    text = notified({"attributes": {}}, state=State.ESCALATED, steps=()).body
    assert "gone" in section(text, "QUEUE NOW")[0]
    assert section(text, "SINCE LAST KNOWN") == [
        "what stood there at 2026-11-15 09:30:00 UTC:",
        "DelaySeconds: 0",
        "MessageRetentionPeriod: 345600",
        "VisibilityTimeout: 60",
    ]


def test_the_difference_to_the_last_known_configuration() -> None:
    assert section(notified().body, "SINCE LAST KNOWN") == [
        "what stood there at 2026-11-15 09:30:00 UTC -> what stands there now:",
        "VisibilityTimeout: 60 -> 30",
    ]
    (same,) = section(notified({"known": Known(NOW, ATTRIBUTES)}).body, "SINCE LAST KNOWN")
    assert same == "no difference to what stood there at 2026-11-16 09:30:00 UTC"
    assert section(notified({"known": None}).body, "SINCE LAST KNOWN") == [
        "nothing is known from before"
    ]


@pytest.mark.parametrize(
    ("last_change", "expected"),
    [
        (None, ["nobody in the 90 days that CloudTrail keeps; it may lag by minutes"]),
        ("throttled", ["not known: throttled"]),
        (
            Change(NOW, "SetQueueAttributes", "arn:x", ("Policy", "DelaySeconds")),
            ["arn:x", "SetQueueAttributes at 2026-11-16 09:30:00 UTC: Policy, DelaySeconds"],
        ),
    ],
)
def test_who_changed_it_last(last_change: Any, expected: list[str]) -> None:
    assert section(notified({"last_change": last_change}).body, "CHANGED LAST BY") == expected


def test_a_proposal_says_how_to_do_it_and_how_to_undo_it() -> None:
    text = notified().body
    assert section(text, "CHANGE")[:2] == ["proposed, not made:", "VisibilityTimeout: 30 s -> 45 s"]
    assert section(text, "CHANGE")[-1].endswith(" --attributes VisibilityTimeout=45")
    assert section(text, "UNDO")[0] == "once the change is made:"
    assert "rollback" not in text
    assert section(text, "UNDO")[-1].endswith(" --attributes VisibilityTimeout=30")
    assert section(text, "TEMPLATE") == []


def test_a_refusal_changed_nothing() -> None:
    text = notified(state=State.REFUSED, reason="1200 s are needed, the ceiling is 900 s").body
    assert "\nWhy: 1200 s are needed, the ceiling is 900 s\n" in text
    assert section(text, "CHANGE")[0].startswith("not made, so there is nothing to undo")
    assert section(text, "UNDO") == []


def test_page_only_symptoms_have_no_change() -> None:
    text = notified(state=State.ESCALATED, steps=()).body
    assert section(text, "CHANGE") == ["none was made, so there is nothing to undo"]
    assert "aws sqs set-queue-attributes" not in text


def test_what_was_tried_can_be_undone() -> None:
    tried = {"state": State.ESCALATED, "came_from": State.INEFFECTIVE}
    text = notified({"attributes": {**ATTRIBUTES, "VisibilityTimeout": "45"}}, **tried).body
    assert section(text, "CHANGE") == ["made by Mendq:", "VisibilityTimeout: 30 s -> 45 s"]
    rollback, by_person, command = section(text, "UNDO")
    assert rollback == f"mendq rollback {CASE.case_id} --region us-east-1"
    assert by_person == "or by hand:"
    assert command.endswith(" --attributes VisibilityTimeout=30")


@pytest.mark.parametrize("now", [{**ATTRIBUTES, "VisibilityTimeout": "60"}, {}])
def test_no_undo_over_somebody_elses_value(now: dict[str, str]) -> None:
    tried = {"state": State.ESCALATED, "came_from": State.INEFFECTIVE}
    text = notified({"attributes": now}, **tried).body
    lines = section(text, "UNDO")
    assert lines
    assert not any("set-queue-attributes" in each or "rollback" in each for each in lines)


def test_undoing_a_retention_says_what_it_costs() -> None:
    steps = ({"attribute": "MessageRetentionPeriod", "before": "60", "after": "345600"},)
    assert (
        section(notified(steps=steps).body, "UNDO")[-1]
        == "this deletes the messages that are older"
    )


def test_a_overridden_setting_has_both_values_in_both_languages() -> None:
    tags = {
        "aws:cloudformation:stack-name": "orders-prod",
        "aws:cloudformation:logical-id": "Orders",
    }
    now = {**ATTRIBUTES, "VisibilityTimeout": "31"}
    text = notified({"tags": tags, "attributes": now}, state=State.OVERRIDDEN).body
    assert section(text, "TEMPLATE") == [
        "owner by its tags: CloudFormation stack orders-prod, Orders",
        "put the value you want there, or the next deployment brings back its own",
        "Mendq leaves these settings alone for 7 days",
        "Mendq's, CloudFormation: VisibilityTimeout: 45",
        "Mendq's, Terraform: visibility_timeout_seconds = 45",
        "theirs, CloudFormation: VisibilityTimeout: 31",
        "theirs, Terraform: visibility_timeout_seconds = 31",
    ]
    assert section(notified(state=State.OVERRIDDEN).body, "TEMPLATE")[0].endswith(
        "no CloudFormation stack"
    )


READ_ON = [
    "runbook: docs/runbooks/visibility_timeout_too_short.md",
    "case: visibility_timeout_too_short-0123456789ab in 123456789012 us-east-1",
]


def test_a_refusal_has_the_command_to_look_with_and_nothing_to_decide() -> None:
    lines = section(notified(state=State.REFUSED).body, "NEXT")
    assert lines[0].startswith("aws sqs list-queue-tags")
    assert lines[1:] == READ_ON


def test_a_proposal_is_approved_or_declined_first_of_all() -> None:
    lines = section(notified().body, "NEXT")
    assert lines[:3] == [
        "mendq approve visibility_timeout_too_short-0123456789ab --region us-east-1",
        "or, to turn it down (it pages no sooner than 24 hours from now again):",
        "mendq decline visibility_timeout_too_short-0123456789ab --region us-east-1",
    ]
    assert lines[4].startswith("aws sqs list-queue-tags")
    assert lines[5:] == READ_ON
    assert "by hand:" in section(notified().body, "CHANGE")


@pytest.mark.parametrize("state", [State.ESCALATED, State.OVERRIDDEN])
def test_what_a_person_settles_a_person_closes(state: State) -> None:
    lines = section(notified(state=state).body, "NEXT")
    assert lines[0].startswith("aws sqs list-queue-tags")
    assert lines[1:] == [
        "when it is settled:",
        "mendq close visibility_timeout_too_short-0123456789ab --region us-east-1",
        *READ_ON,
    ]


def test_an_operators_command_is_one_that_mendq_has() -> None:
    tried = notified(state=State.ESCALATED, came_from=State.INEFFECTIVE, steps=(DONE,))
    unfulfilled = notified(state=State.EXPIRED, came_from=State.APPROVED)
    lines = [
        line.split() for each in (notified(), tried, unfulfilled) for line in each.body.splitlines()
    ]
    verbs = {words[1] for words in lines if words[:1] == ["mendq"]}
    assert verbs == {"approve", "decline", "close", "rollback", "show"}
    assert verbs <= set(COMMANDS)


def test_what_comes_first_stands_before_the_change() -> None:
    command = "aws sqs set-queue-attributes --queue-url 'a b' --attributes MaximumMessageSize=1024"
    text = notified({"first": [command]}).body
    assert section(text, "FIRST") == [command]
    assert text.index("\nFIRST\n") < text.index("\nCHANGE\n")
    assert section(notified({"first": ["x\nNEXT"]}).body, "FIRST") == ["x NEXT"]
    assert "FIRST" not in notified().body


def test_a_reason_is_read_to_its_end() -> None:
    text = notified(reason="x" * 990 + " the end").body
    assert "the end\n" in text
    assert "Why: " + "x" * 997 + "...\n" in notified(reason="x" * 1_001).body


def test_beyond_the_plan() -> None:
    advice = [str(SetVisibilityTimeout(45, 240)), "x\nNEXT"]
    assert section(notified({"beyond": advice}).body, "BEYOND THAT") == [
        "VisibilityTimeout 45 -> 240",
        "x NEXT",
    ]
    assert "BEYOND THAT" not in notified().body


def test_many_steps_are_counted_and_set_by_one_command() -> None:
    steps = tuple({**STEP, "attribute": f"A{n}"} for n in range(6))
    lines = section(notified(steps=steps).body, "CHANGE")
    assert "and 2 more" in lines
    assert lines[-1].endswith(" --attributes A0=45,A1=45,A2=45,A3=45,A4=45,A5=45")


def mass(
    count: int, managed_queues: int = 40, next_command: str = ""
) -> notification.NotificationText:
    of = notification.MassSymptom(
        "kms_throttled",
        "KMS throttles the queue's calls.",
        "docs/runbooks/kms_throttled.md",
        "Look at the request quota of KMS.",
        next_command,
    )
    arns = [f"arn:aws:sqs:us-east-1:123456789012:q{n:03}" for n in range(count)]
    where = notification.place("123456789012", "us-east-1")
    return notification.of_mass_symptom(of, arns, managed_queues, NOW, where)


def test_a_mass_symptom_is_one_page_with_some_names() -> None:
    text = mass(12).body
    assert text.startswith("12 of 40 queues: KMS throttled. One cause elsewhere is likely")
    assert section(text, "QUEUES")[-2:] == ["q009", "and 2 more"]
    advice, runbook, _ = section(text, "NEXT")
    assert advice == "Look at the request quota of KMS."
    assert section(mass(12, next_command="aws sqs x").body, "NEXT")[:3] == [
        advice,
        "aws sqs x",
        runbook,
    ]
    assert mass(4, managed_queues=0).body.startswith("4 queues: KMS throttled. ")
    assert mass(12).subject == (
        "Mendq stopped: KMS throttled on 12 of 40 queues in 123456789012 us-east-1"
    )


def test_the_page_that_holds_back_the_others() -> None:
    late = (NOW + timedelta(hours=15)).astimezone()
    text = notification.of_held_back("123456789012", "us-east-1", late, 20)
    assert "20 pages went out in the hour of 2026-11-17 00:30:00 UTC" in text.body
    assert " --prefix cases/dt=2026-11-17/" in text.body
    assert f"--stack-name {STACK_NAME} " in text.body
    assert len(text.body.splitlines()[0]) <= notification.MOST_FIRST_LINE
