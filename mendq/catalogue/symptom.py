"""The shape of an entry of the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mendq.model.evidence import MESSAGE_TRAFFIC
from mendq.model.facts import Facts, Need
from mendq.model.failed_call import CODES, FailedCall
from mendq.model.limits import Limits, Mode
from mendq.model.plan import Plan, Refusal
from mendq.model.steps import AttributeStep, SetVisibilityTimeout
from mendq.model.tags import QueueTag
from mendq.notifications.commands import quota
from mendq.notifications.next_steps import runbook_of
from mendq.notifications.text import Section

SQS_GUIDE = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide"
DLQ_GUIDE = f"{SQS_GUIDE}/sqs-dead-letter-queues.html"
SENDS = frozenset({"SendMessage", "SendMessageBatch"})
# The symptoms with a record in tests/catalogue/recorded that AWS wrote: none so far. Every other
# symptom that rests on failed calls is unconfirmed.
CONFIRMED: frozenset[str] = frozenset()
Planner = Callable[[Facts, Limits], Plan | Refusal]
Steps = tuple[AttributeStep, ...]
ExtraSections = Callable[[Facts], tuple[Section, ...]]


def anything(_subject: object) -> bool:
    """Return True, whatever is asked: the default for conditions that an entry does not need."""
    return True


@dataclass(frozen=True)
class QuotaSection:
    """The section of a notification about a quota that was hit.

    Attributes:
        name: The quota's name, for people.
        default: AWS's documented default, as text.
        service_code: The service's code in Service Quotas.
        quota_code: The quota's code there. Empty: the notification lists the service's quotas.
    """

    name: str
    default: str
    service_code: str
    quota_code: str = ""

    def __call__(self, facts: Facts) -> tuple[Section, ...]:
        """Return the section for the queue of `facts`."""
        section = quota(
            facts.queue_arn, self.name, self.default, self.service_code, self.quota_code
        )
        return (section,)


def carries_messages(call: FailedCall) -> bool:
    """Return True if the call sends, receives, deletes or hides messages.

    A call that only looks at a queue is no evidence.
    """
    return call.event_name in MESSAGE_TRAFFIC


@dataclass(frozen=True)
class SeenAs:
    """One way in which the symptom shows in CloudTrail.

    Attributes:
        event_names: The API calls; None for any.
        error_code: The canonical error code.
        says: A condition on the error message, which is the caller's text and not to be trusted.
        on: A condition on the queue's ARN, which is None if the record names no queue.
    """

    event_names: frozenset[str] | None
    error_code: str
    says: Callable[[str], bool] = anything
    on: Callable[[str | None], bool] = anything

    def fits(self, call: FailedCall) -> bool:
        return (
            call.error_code == self.error_code
            and (self.event_names is None or call.event_name in self.event_names)
            and self.on(call.queue_arn)
            and self.says(call.error_message)
        )


def seen_as_labelled(name: str, on: Callable[[str | None], bool] = anything) -> tuple[SeenAs, ...]:
    """Return one way for each error code that `mendq/model/failed_call.py` lists for a symptom."""
    return tuple(SeenAs(None, code, on=on) for code in CODES[name])


@dataclass(frozen=True)
class DetectedFault:
    """What a detection found wrong with a queue.

    Attributes:
        because: A sentence with the numbers. The notification begins with it.
        about: The ARN of another queue that is missing, or empty. People are asked about it once,
            however many queues name it.
        seconds_left: How soon messages are lost; None if none are.
    """

    because: str
    about: str = ""
    seconds_left: float | None = None


@dataclass(frozen=True)
class Detection:
    """How a scan finds the symptom, without a failed call.

    Attributes:
        detect: Returns what is wrong with a queue, or None. It reads only the facts in `needs`.
        needs: The facts to gather before `detect`.
        suspects: Returns True if attributes, tags and consumers make the symptom likely. Only then
            metrics are read, because each costs money.
        of_configuration: True if the fault is in the configuration and not in the traffic. Then the
            scan detects before it reads metrics, reports a few queues a day, and many queues at
            once are no mass symptom.
        measured_last: True if the symptom only costs money. Its metrics are read after those of all
            other symptoms.
        reads: For `measured_last`, the kinds of metrics to read if nothing else is suspected.
    """

    detect: Callable[[Facts], DetectedFault | None]
    needs: frozenset[Need] = frozenset({Need.QUEUE})
    suspects: Callable[[Facts], bool] = anything
    of_configuration: bool = False
    measured_last: bool = False
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class CallExample:
    """A failed call that the entry matches.

    `answer` is what the entry plans for the queue in `facts`: steps, or the code of a refusal that
    asks for a person.
    """

    title: str
    call: FailedCall
    facts: Facts | None = None
    answer: Steps | str = ()


@dataclass(frozen=True)
class QueueExample:
    """A queue that the entry's detection finds something wrong with; `answer` is its plan."""

    title: str
    facts: Facts
    answer: Steps | str = ()


@dataclass(frozen=True)
class CallNearMiss:
    """A near miss: a call that the entry does not match."""

    title: str
    call: FailedCall


@dataclass(frozen=True)
class QueueNearMiss:
    """A near miss: a queue that the entry's detection finds nothing wrong with."""

    title: str
    facts: Facts


@dataclass(frozen=True)
class RefusalExample:
    """A near miss: a queue that the entry refuses to touch, with the code of the refusal."""

    title: str
    facts: Facts
    code: str


NearMiss = CallNearMiss | QueueNearMiss | RefusalExample


@dataclass(frozen=True)
class Advice:
    """What people should look for if many queues have the symptom.

    `command` returns a command for the ARN of one of these queues, or empty.
    """

    words: str = "Look for what these queues have in common: a deployment, a key, a network."
    command: Callable[[str], str] = lambda _: ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Symptom:
    """A fault of a queue. The subclass says what Mendq does about it.

    `speaks` returns True if a call counts as evidence. `tags` declares the tags that the detection
    and the plan read, except `TAGS_OF_EVERY_QUEUE`. A tag that nothing declares is reported as a
    typing error.
    """

    name: str
    sentence: str
    plan_in_words: str
    aws_page: str
    seen_as: tuple[SeenAs, ...] = ()
    speaks: Callable[[FailedCall], bool] = anything
    detection: Detection | None = None
    tags: tuple[QueueTag, ...] = ()
    examples: Callable[[], tuple[CallExample | QueueExample | NearMiss, ...]]

    # People are to know of it though nothing can be written.
    notifies_anyway = True

    # What is only reported has none of these.
    needs: frozenset[Need] = field(default=frozenset(), init=False)
    plan: Planner | None = field(default=None, init=False)
    steps: tuple[type[AttributeStep], ...] = field(default=(), init=False)
    autonomy: Mode | None = field(default=None, init=False)
    shows: tuple[str, ...] = field(default=(), init=False)
    gives_way_to: frozenset[str] = field(default=frozenset(), init=False)
    mass: Advice = field(default=Advice(""), init=False)

    @staticmethod
    def beside(_facts: Facts) -> tuple[Section, ...]:
        """No section of its own."""
        return ()

    @property
    def every_need(self) -> frozenset[Need]:
        """What it takes to find it without a failed call, and to plan."""
        return self.needs | (self.detection.needs if self.detection else frozenset())

    @property
    def attributes(self) -> tuple[str, ...]:
        """What a case of it may claim."""
        return tuple(step.attribute for step in self.steps)

    @property
    def is_unconfirmed(self) -> bool:
        """Whether failed calls show it and nobody has seen AWS record one."""
        return bool(self.seen_as) and self.name not in CONFIRMED

    @property
    def is_of_configuration(self) -> bool:
        return bool(self.detection and self.detection.of_configuration)

    @property
    def outlives_the_timeout(self) -> bool:
        """Whether messages received before a fix still show it: they keep their timeout."""
        return SetVisibilityTimeout in self.steps

    @property
    def runbook(self) -> str:
        return runbook_of(self.name)

    @property
    def ships_as(self) -> str:
        """How far it goes out of the box, in a word."""
        return "count only" if self.detection is None else "report only"

    def matches(self, call: FailedCall) -> bool:
        return any(way.fits(call) for way in self.seen_as)


class ReportedSymptom(Symptom):
    """A symptom that nobody is notified of: a scan's finding, or calls that are only counted."""


@dataclass(frozen=True, eq=False, kw_only=True)
class NotifiedSymptom(Symptom):
    """A symptom that people are notified of.

    Attributes:
        needs: The facts to gather before `plan`.
        plan: Returns the steps to take, or a refusal.
        shows: The queue attributes that the notification shows, even if they are not set.
        beside: Returns further sections of the notification; they come before any change.
        gives_way_to: Symptoms that explain the fault better or must be fixed first. While a case
            of one is open on the queue or its source, or the same scan has found one there,
            this symptom is not acted on.
        mass: What people should look for if many queues have the symptom.
        habit: What the weekly report says, after the queue's name, of a queue that has the symptom
            again and again. Empty: nothing.
    """

    needs: frozenset[Need] = frozenset({Need.QUEUE})
    plan: Planner = field()
    shows: tuple[str, ...] = ()
    beside: ExtraSections = lambda _: ()  # type: ignore[assignment]
    gives_way_to: frozenset[str] = frozenset()
    mass: Advice = Advice()
    habit: str = ""

    @property
    def ships_as(self) -> str:
        return "page only"


@dataclass(frozen=True, eq=False, kw_only=True)
class FixedSymptom(NotifiedSymptom):
    """A symptom that Mendq can fix.

    Attributes:
        steps: The kinds of change that its plans consist of.
        autonomy: The highest mode. `PROPOSE`: a person must approve each change.
        notifies_anyway: True if people are notified even though Mendq can fix it, because the
            notification is about the callers.
    """

    steps: tuple[type[AttributeStep], ...] = field()
    autonomy: Mode = Mode.PROPOSE
    notifies_anyway: bool = False

    @property
    def ships_as(self) -> str:
        """What needs approved sources is proposed until a person has approved it once for one."""
        asks_first = Need.APPROVED_SOURCES in self.needs
        return f"{Mode.PROPOSE}, then {self.autonomy}" if asks_first else str(self.autonomy)
