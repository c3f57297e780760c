"""Plans for a DLQ; and when none is made, although it is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mendq.catalogue._attach_dlq import FIXED_FIRST, gone, has_none, make_again, make_and_attach
from mendq.catalogue.examples import DLQ_ARN, QUEUE_ARN, STANDARD_ARN, measured, queue
from mendq.model.case import State
from mendq.model.dlq import attributes_of_dlq
from mendq.model.facts import DlqFacts, Facts, LambdaConsumer, SourceQueue
from mendq.model.plan import Plan, Refusal
from mendq.model.queue import Redrive, RedriveAllow, arn_of_dlq
from mendq.model.steps import Owner

NONE = replace(
    queue(queue_arn=STANDARD_ARN, KmsMasterKeyId="alias/orders"),
    dlq_sources=(),
    dlq_namesake=DlqFacts(DLQ_ARN, None),
)
AS_MADE = attributes_of_dlq(NONE, DLQ_ARN)


def named_by(facts: Facts, **attributes: str) -> Facts:
    there = {"QueueArn": DLQ_ARN, **AS_MADE, **attributes}
    return replace(facts, dlq_namesake=DlqFacts(DLQ_ARN, there))


def steps_of(answer: Plan | Refusal) -> list[tuple[str, str]]:
    assert isinstance(answer, Plan)
    assert {each.owner for each in answer.steps} == {Owner.ATTACH_DLQ}
    assert all(each.out_of_bounds() is None for each in answer.steps)
    return [(each.attribute, str(each.after)) for each in answer.steps]


def test_a_queue_of_its_own_is_made_and_attached() -> None:
    answer = make_and_attach(NONE, "because")
    assert steps_of(answer) == [
        ("DeadLetterQueue", DLQ_ARN),
        ("RedrivePolicy", f'{{"deadLetterTargetArn":"{DLQ_ARN}","maxReceiveCount":5}}'),
    ]


def test_a_fifo_queue_gets_a_fifo_one() -> None:
    dead = arn_of_dlq(QUEUE_ARN)
    namesake = DlqFacts(dead, None)
    facts = replace(queue(), dlq_sources=(), dlq_namesake=namesake)
    assert steps_of(make_and_attach(facts, "because"))[0] == ("DeadLetterQueue", dead)


def test_the_plan_stays_the_same_once_its_queue_is_made() -> None:
    """A run that died between the two is taken up again; and after an undo the queue is kept."""
    assert make_and_attach(named_by(NONE), "because") == make_and_attach(NONE, "because")


@pytest.mark.parametrize(
    "attributes",
    [
        {"MessageRetentionPeriod": "345600"},
        {"KmsMasterKeyId": "alias/others"},
        {"RedriveAllowPolicy": ""},
        {"RedriveAllowPolicy": RedriveAllow("byQueue", (QUEUE_ARN,)).text},
        {"RedriveAllowPolicy": RedriveAllow("byQueue", (QUEUE_ARN, STANDARD_ARN)).text},
        {"RedriveAllowPolicy": "{"},
        {"Policy": '{"Statement":[]}'},
        {"RedrivePolicy": Redrive(STANDARD_ARN, 5).text},
    ],
)
def test_somebody_else_s_queue_of_that_name_is_never_attached(attributes: dict[str, str]) -> None:
    answer = make_and_attach(named_by(NONE, **attributes), "because")
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.becomes) == ("name_taken", State.ESCALATED)
    assert DLQ_ARN in answer.reason


@pytest.mark.parametrize(
    "facts",
    [
        replace(NONE, attributes={"RedrivePolicy": Redrive(STANDARD_ARN, 3).text}),
        replace(NONE, dlq_sources=(SourceQueue(QUEUE_ARN, {}),)),
        replace(NONE, dlq_sources=None),
    ],
)
def test_what_has_one_by_now_gets_no_other(facts: Facts) -> None:
    answer = make_and_attach(facts, "because")
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.becomes) == ("need_already_met", None)


@pytest.mark.parametrize("namesake", [None, DlqFacts(STANDARD_ARN, None)])
def test_without_a_look_at_the_name_nothing_is_made(namesake: DlqFacts | None) -> None:
    answer = make_and_attach(replace(NONE, dlq_namesake=namesake), "because")
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.becomes) == ("name_not_known", None)


@pytest.mark.parametrize("cause", sorted(FIXED_FIRST))
def test_no_backlog_is_dumped(cause: str) -> None:
    facts = replace(NONE, open_symptoms=frozenset({cause, "kms_throttled"}))
    answers = (make_and_attach(facts, "because"), make_again(facts, DLQ_ARN, "because"))
    for answer in answers:
        assert isinstance(answer, Refusal)
        assert (answer.code, answer.becomes) == ("cause_first", None)
        assert cause in answer.reason


FUNCTION = LambdaConsumer("arn:aws:lambda:us-east-1:123456789012:function:bill", 30, 5)
QUIET = measured(sent=60, received=60, deleted=60)
WAITING = replace(
    NONE, attributes={**NONE.attributes, "ApproximateNumberOfMessages": "1"}, measured=QUIET
)


@pytest.mark.parametrize(
    "facts",
    [
        replace(WAITING, lambda_consumers=(replace(FUNCTION, error_share=0.5),)),
        replace(WAITING, measured=measured(sent=200, received=400, backlog_now=200)),
        replace(WAITING, measured=measured(sent=200, received=300, deleted=300)),
    ],
)
def test_no_backlog_is_dumped_whose_cause_has_no_open_case(facts: Facts) -> None:
    """Nobody has opened one yet, or a person has closed it."""
    answers = (make_and_attach(facts, "because"), make_again(facts, DLQ_ARN, "because"))
    for answer in answers:
        assert isinstance(answer, Refusal)
        assert (answer.code, answer.becomes) == ("cause_first", None)


@pytest.mark.parametrize(
    "facts",
    [
        replace(NONE, lambda_consumers=(FUNCTION,)),
        replace(WAITING, measured=None),
        replace(WAITING, move_task_running=True),
    ],
)
def test_nothing_is_attached_before_it_was_measured(facts: Facts) -> None:
    answers = (make_and_attach(facts, "because"), make_again(facts, DLQ_ARN, "because"))
    for answer in answers:
        assert isinstance(answer, Refusal)
        assert (answer.code, answer.becomes) == ("not_measured", None)
    assert isinstance(make_and_attach(WAITING, "because"), Plan)


def test_another_case_is_no_reason_to_wait() -> None:
    facts = replace(NONE, open_symptoms=frozenset({"kms_throttled"}))
    assert isinstance(make_and_attach(facts, "because"), Plan)


def test_the_queue_that_is_named_is_made_again_and_the_source_is_left() -> None:
    named = f"{DLQ_ARN}-of-old"
    assert steps_of(make_again(NONE, named, "because")) == [("DeadLetterQueue", named)]


@pytest.mark.parametrize(
    ("dlq_arn", "attributes", "is_gone"),
    [
        (DLQ_ARN, None, True),
        (DLQ_ARN, {}, False),
        (STANDARD_ARN, None, False),
        (QUEUE_ARN, None, False),
        (DLQ_ARN.replace("us-east-1", "eu-west-1"), None, False),
        (DLQ_ARN.replace("123456789012", "210987654321"), None, False),
        ("orders-dlq", None, False),
    ],
)
def test_gone_is_what_could_stand_there_and_does_not(
    dlq_arn: str, attributes: dict[str, str] | None, is_gone: bool
) -> None:
    facts = replace(NONE, dlq=DlqFacts(dlq_arn, attributes))
    assert gone(facts) == (dlq_arn if is_gone else None)


def test_who_has_none() -> None:
    assert has_none(NONE)
    assert not has_none(replace(NONE, dlq_sources=None)), "nobody asked whose it is"
    assert not has_none(replace(NONE, dlq_sources=(SourceQueue(QUEUE_ARN, {}),)))
    assert not has_none(replace(NONE, attributes={"RedrivePolicy": "{"})), "whatever it says"
    assert gone(NONE) is None
