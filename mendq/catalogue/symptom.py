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
# The symptoms of which a record that AWS wrote lies in tests/catalogue/recorded: none so far. What
# rests on failed calls is unconfirmed for every other.
CONFIRMED: frozenset[str] = frozenset()
Planner = Callable[[Facts, Limits], Plan | Refusal]
Steps = tuple[AttributeStep, ...]
ExtraSections = Callable[[Facts], tuple[Section, ...]]


def anything(_subject: object) -> bool:
    """True: for codes that mean the same on every queue, calls that all count, and the like."""
    return True


def of_quota(*what: str) -> ExtraSections:
    """The section about a quota that was hit: its name, default, service and code."""
    return lambda facts: (quota(facts.queue_arn, *what),)


def carries_messages(call: FailedCall) -> bool:
    """Whether the call is message traffic: looking at a queue is no evidence."""
    return call.event_name in MESSAGE_TRAFFIC


@dataclass(frozen=True)
class SeenAs:
    """One way the symptom shows in CloudTrail: event names (None: any), code, queue, message.

    `says` reads the error message, untrusted; `on` the queue's ARN, None where none is named.
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
    """One way for each error code that means this symptom by itself."""
    return tuple(SeenAs(None, code, on=on) for code in CODES[name])


@dataclass(frozen=True)
class DetectedFault:
    """What a scan found wrong: a sentence with its numbers, which the page begins with.

    `about` is another queue that is missing, which people are asked for once, whoever names it.
    `seconds_left` is how soon something is lost, None where nothing is.
    """

    because: str
    about: str = ""
    seconds_left: float | None = None


@dataclass(frozen=True)
class Detection:
    """How the symptom is seen where no call fails.

    `detect` reads what `needs` names. Measurements are asked for only of queues that `suspects`
    finds likely from attributes, tags and consumers alone, because each costs money. What is wrong
    with a configuration, and not with what goes on, is `of_configuration`: it is looked for before
    measuring, and measured only where nothing is found so; it is told of a few queues a day, and
    many at once are no mass symptom. What merely costs money, and may be anywhere, is
    `measured_last`, when all queues are that are suspect of anything else; where a queue is suspect
    of nothing more, those kinds of series alone are asked for that `reads` names.
    """

    detect: Callable[[Facts], DetectedFault | None]
    needs: frozenset[Need] = frozenset({Need.QUEUE})
    suspects: Callable[[Facts], bool] = anything
    of_configuration: bool = False
    measured_last: bool = False
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class CallExample:
    """An example call that the entry matches, and its answer where the queue is as `facts` say:
    the steps of a plan, or the code of a page.
    """

    title: str
    call: FailedCall
    facts: Facts | None = None
    answer: Steps | str = ()


@dataclass(frozen=True)
class QueueExample:
    """An example queue that the entry's detection finds something wrong with, and its answer."""

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
    """What to look for where many queues have the symptom; `command` takes the ARN of one."""

    words: str = "Look for what these queues have in common: a deployment, a key, a network."
    command: Callable[[str], str] = lambda _: ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Symptom:
    """One thing that goes wrong with a queue; what Mendq does about it is the type.

    `speaks` says whether a call counts as evidence. `tags` declares the tags that the detection and
    the plan read besides `TAGS_OF_EVERY_QUEUE`: from it Mendq knows that they are no typing errors.
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
    """A symptom that is only counted or, where a scan detects it, reported."""


@dataclass(frozen=True, eq=False, kw_only=True)
class NotifiedSymptom(Symptom):
    """A symptom that people are paged for.

    `shows` names the attributes that its page shows, set or not; `beside` gives sections of its
    own, before any change. `habit` is what the weekly report says, after its name, of a queue that
    has it again and again; empty: nothing. While a case of one that it `gives_way_to` is open, or a
    scan has found one in the same round, on its queue or one whose messages that takes, it is not
    taken up: that says it better, or comes first.
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
    """A symptom that Mendq fixes by `steps`, as far as `autonomy` lets it: by a person's word.

    `notifies_anyway`: its page is about who calls, so that it pages even where it can fix.
    """

    steps: tuple[type[AttributeStep], ...] = field()
    autonomy: Mode = Mode.PROPOSE
    notifies_anyway: bool = False

    @property
    def ships_as(self) -> str:
        """What needs approved sources is proposed until a person has approved it once for one."""
        asks_first = Need.APPROVED_SOURCES in self.needs
        return f"{Mode.PROPOSE}, then {self.autonomy}" if asks_first else str(self.autonomy)
