"""Messages that are never handled are handed out until they expire: no DLQ is there.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
"""

from __future__ import annotations

from dataclasses import replace

from mendq.catalogue import examples
from mendq.catalogue._attach_dlq import FIXED_FIRST, gone, has_none, make_again, make_and_attach
from mendq.catalogue.symptom import NOT_FOUND, Detected, Detection, Found, NearMiss, Symptom
from mendq.model import dlq
from mendq.model.facts import DlqFacts, Facts, LambdaConsumer, Need, SourceQueue
from mendq.model.limits import Limits, Mode
from mendq.model.metrics import Measured
from mendq.model.plan import Plan, Refusal
from mendq.model.queue import DLQ_SUFFIX, FIFO, MAX_RECEIVE_COUNT, Redrive, RedriveAllow
from mendq.model.steps import AttachDlq, CreateDlq
from mendq.notifications.text import counted

RECEIVES_PER_DELETE = 3
# A case of it is about the same thing, and says it better.
SAID_BY = frozenset({"fifo_group_blocked"})
_NEEDS = frozenset(
    {
        Need.QUEUE,
        Need.LAMBDA_CONSUMERS,
        Need.DLQ,
        Need.DLQ_SOURCES,
        Need.DLQ_NAMESAKE,
        Need.OPEN_CASES,
        Need.MEASUREMENTS,
        Need.MOVE_TASKS,
    }
)


def detect(facts: Facts) -> Found | None:
    """One that is named and gone, or none where a message would come back forever."""
    dlq_arn = gone(facts)
    if dlq_arn is not None:
        return Found(
            f"its RedrivePolicy names {dlq_arn}, and there is no such queue: what cannot "
            "be handled is handed out again and again until it expires",
            about=dlq_arn,
        )
    because = _why_it_needs_one(facts)
    return Found(because) if because else None


def suspects(facts: Facts) -> bool:
    """A queue without one that nobody knows to need it; the rest is seen without measuring."""
    may_need = has_none(replace(facts, dlq_sources=facts.dlq_sources or ()))
    return may_need and not facts.lambda_consumers and facts.visible + facts.in_flight > 0


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """The very queue that is named, or one of its own."""
    found = detect(facts)
    because = facts.found or (found.because if found else "it has no DLQ")
    dlq_arn = gone(facts)
    if dlq_arn is not None:
        return make_again(facts, dlq_arn, because)
    return make_and_attach(facts, because)


def _why_it_needs_one(facts: Facts) -> str | None:
    """What is called a DLQ is one whose sources are gone."""
    is_called_one = facts.queue_arn.removesuffix(FIFO).endswith(DLQ_SUFFIX)
    if not has_none(facts) or is_called_one or SAID_BY & facts.open_symptoms:
        return None
    if facts.lambda_consumers:
        function_arn = facts.lambda_consumers[0].function_arn
        return f"it has no DLQ, and what {function_arn} fails at comes back forever"
    measured = facts.measured
    if measured is None or facts.move_task_running or not _comes_back(measured):
        return None
    return (
        f"it has no DLQ, and messages come back: {measured.received:,} receives of "
        f"{counted(measured.sent + measured.before.backlog, 'message')} in {measured.hours:.1f} h, "
        f"{measured.deleted:,} of them deleted"
    )


def _comes_back(measured: Measured) -> bool:
    """More receives than there were messages, few deletes, and something left to receive."""
    messages = measured.sent + measured.before.backlog
    return (
        measured.received > RECEIVES_PER_DELETE * measured.deleted
        and measured.received > messages
        and measured.now.backlog > 0
    )


_FUNCTION = LambdaConsumer("arn:aws:lambda:us-east-1:123456789012:function:bill", 30, 5)
_DEAD = examples.DLQ_ARN
_QUARANTINE = dlq.arn_of_quarantine(examples.STANDARD_ARN)
_TEXT = Redrive(_DEAD, MAX_RECEIVE_COUNT).text
_ATTACH = (CreateDlq("", _DEAD), AttachDlq("", _TEXT))
_NONE = replace(
    examples.queue(queue_arn=examples.STANDARD_ARN, ApproximateNumberOfMessages="1"),
    dlq_sources=(),
    dlq_namesake=DlqFacts(_DEAD, None),
)
_QUIET = examples.measured(sent=60, received=60, deleted=60)
_WITH_LAMBDA = replace(_NONE, lambda_consumers=(_FUNCTION,), measured=_QUIET)
_FAILING = replace(_FUNCTION, duration_p99_seconds=0.4, error_share=0.95)
_COMES_BACK = replace(
    _NONE,
    measured=examples.measured(sent=3, received=60, deleted=2, backlog_now=1, visible_now=1),
)
_GONE = replace(
    examples.queue(queue_arn=examples.STANDARD_ARN, RedrivePolicy=_TEXT),
    dlq=DlqFacts(_DEAD, None),
    dlq_sources=(),
)
_FROM_BEFORE = DlqFacts(
    _DEAD,
    {
        "MessageRetentionPeriod": "1209600",
        "SqsManagedSseEnabled": "true",
        "RedriveAllowPolicy": RedriveAllow("byQueue", (examples.STANDARD_ARN,)).text,
    },
)

DLQ_MISSING = Symptom(
    name="dlq_missing",
    sentence="No DLQ takes what cannot be handled, so it comes back till it expires.",
    plan_in_words="Make the queue that RedrivePolicy names, under that name; where none is named, "
    "make one and attach it after 5 receives. Never while consumers fail or are too slow, "
    "nor before that was measured.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "sqs-dead-letter-queues.html",
    needs=_NEEDS,
    steps=(CreateDlq, AttachDlq),
    plan=plan,
    autonomy=Mode.PROPOSE,
    gives_way_to=FIXED_FIRST | SAID_BY,
    shows=(AttachDlq.attribute,),
    # It is the configuration that lacks something; a measurement only says that it matters now.
    detection=Detection(
        detect,
        needs=_NEEDS,
        suspects=suspects,
        of_configuration=True,
    ),
    detected=(
        Detected("the queue that is named is gone", _GONE, (CreateDlq("", _DEAD),)),
        Detected("a Lambda function reads it", _WITH_LAMBDA, _ATTACH),
        Detected("a message comes back again and again", _COMES_BACK, _ATTACH),
        Detected(
            "the one that Mendq made stands there from before",
            replace(_WITH_LAMBDA, dlq_namesake=_FROM_BEFORE),
            _ATTACH,
        ),
        Detected(
            "somebody else's queue has the name",
            replace(
                _WITH_LAMBDA,
                dlq_namesake=DlqFacts(_DEAD, {"MessageRetentionPeriod": "345600"}),
            ),
            code="name_taken",
        ),
    ),
    near_misses=(
        NearMiss(
            "the queue that is named would be a quarantine",
            "names_a_quarantine",
            facts=replace(_GONE, dlq=DlqFacts(_QUARANTINE, None)),
        ),
        NearMiss("it has one", NOT_FOUND, facts=replace(_GONE, dlq=_FROM_BEFORE)),
        NearMiss(
            "it takes DLQ messages itself",
            NOT_FOUND,
            facts=replace(_WITH_LAMBDA, dlq_sources=(SourceQueue(examples.QUEUE_ARN, {}),)),
        ),
        NearMiss(
            "it is called a DLQ",
            NOT_FOUND,
            facts=replace(_WITH_LAMBDA, queue_arn=_DEAD),
        ),
        NearMiss(
            "three receives to a delete",
            NOT_FOUND,
            facts=replace(
                _NONE, measured=examples.measured(sent=1, received=6, deleted=2, backlog_now=1)
            ),
        ),
        NearMiss(
            "much was received and is still at work: nothing came back",
            NOT_FOUND,
            facts=replace(_NONE, measured=examples.measured(sent=60, received=60, backlog_now=60)),
        ),
        NearMiss(
            "its consumer fails: its backlog would be dumped",
            "cause_first",
            facts=replace(_WITH_LAMBDA, open_symptoms=frozenset({"consumer_failing"})),
        ),
        NearMiss(
            "its visibility timeout is too short: the same",
            "cause_first",
            facts=replace(_GONE, open_symptoms=frozenset({"visibility_timeout_too_short"})),
        ),
        NearMiss(
            "its function fails nearly always, and no case is open about it yet",
            "cause_first",
            facts=replace(_WITH_LAMBDA, lambda_consumers=(_FAILING,)),
        ),
        NearMiss(
            "most receives come to nothing, whoever reads it",
            "cause_first",
            facts=replace(
                _NONE, measured=examples.measured(sent=900, received=4_000, backlog_now=900)
            ),
        ),
        NearMiss(
            "messages are handled twice",
            "cause_first",
            facts=replace(
                _WITH_LAMBDA, measured=examples.measured(sent=900, received=1_200, deleted=1_200)
            ),
        ),
        NearMiss(
            "nobody has measured whether its consumers finish what they receive",
            "not_measured",
            facts=replace(_WITH_LAMBDA, measured=None),
        ),
        NearMiss(
            "nobody looked whether the name is free",
            "name_not_known",
            facts=replace(_WITH_LAMBDA, dlq_namesake=None),
        ),
        NearMiss(
            "the queue that is named would be of another type",
            NOT_FOUND,
            facts=replace(_GONE, dlq=DlqFacts(examples.QUEUE_ARN, None)),
        ),
    ),
)
