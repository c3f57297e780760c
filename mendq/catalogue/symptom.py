"""The shape of an entry of the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from mendq.model.evidence import EvidenceNeeded
from mendq.model.facts import Facts, Need
from mendq.model.failed_call import FailedCall, codes_labelled, says_anything
from mendq.model.limits import Limits, Mode
from mendq.model.plan import Plan, Refusal
from mendq.model.steps import AttributeStep

NOT_FOUND = "not_found"


def any_queue(_queue_arn: str | None) -> bool:
    """For codes that mean the same on every queue."""
    return True


def no_command(_queue_arn: str) -> str:
    """For entries where words say what to look for."""
    return ""


def any_call(_call: FailedCall) -> bool:
    """For entries whose every call counts as evidence."""
    return True


@dataclass(frozen=True)
class SeenAs:
    """One way the symptom shows in CloudTrail: event names (None: any), code, queue, message.

    `says` reads the error message, untrusted; `on` the queue's ARN, None where none is named.
    """

    event_names: frozenset[str] | None
    error_code: str
    says: Callable[[str], bool] = says_anything
    on: Callable[[str | None], bool] = any_queue

    def fits(self, call: FailedCall) -> bool:
        return (
            call.error_code == self.error_code
            and (self.event_names is None or call.event_name in self.event_names)
            and self.on(call.queue_arn)
            and self.says(call.error_message)
        )


def seen_as_labelled(name: str, events: Iterable[str] | None = None) -> tuple[SeenAs, ...]:
    """One way for each error code that means this symptom by itself."""
    event_names = None if events is None else frozenset(events)
    return tuple(SeenAs(event_names, code) for code in codes_labelled(name))


@dataclass(frozen=True)
class Found:
    """What a scan found wrong: a sentence with its numbers, which the page begins with.

    `about` is another queue that is missing, which people are asked for once, whoever names it.
    `seconds_left` is how soon something is lost, None where nothing is.
    """

    because: str
    about: str = ""
    seconds_left: float | None = None


def any_facts(_facts: Facts) -> bool:
    """For what is asked of every queue."""
    return True


@dataclass(frozen=True)
class Detection:
    """How the symptom is seen where no call fails.

    `detect` reads what `needs` names. Measurements are asked for only of queues that `suspects`
    finds likely from attributes, tags and consumers alone, because each costs money. What is wrong
    with a configuration, and not with what goes on, is `of_configuration`: it is looked for before
    measuring, and measured only where nothing is found so; it is told of a few queues a day, and
    many at once are no mass symptom. What merely costs money, and may be anywhere, is
    `measured_last`, when all queues are that are suspect of anything else.
    """

    detect: Callable[[Facts], Found | None]
    needs: frozenset[Need]
    suspects: Callable[[Facts], bool] = any_facts
    of_configuration: bool = False
    measured_last: bool = False


@dataclass(frozen=True)
class Caught:
    """An example that the entry must catch.

    With `facts` it must answer with `plan`, the change to each value; or, where `code` is given,
    with that refusal, which pages.
    """

    title: str
    call: FailedCall
    facts: Facts | None = None
    plan: tuple[AttributeStep, ...] = ()
    code: str | None = None


@dataclass(frozen=True)
class Detected:
    """An example that the entry's detection must find, answered as a caught one is."""

    title: str
    facts: Facts
    plan: tuple[AttributeStep, ...] = ()
    code: str | None = None


@dataclass(frozen=True)
class NearMiss:
    """An example that must not be touched.

    With a `call` the entry must not match it; with `facts` it must refuse with `code`, where that
    is NOT_FOUND by not detecting anything.
    """

    title: str
    code: str
    call: FailedCall | None = None
    facts: Facts | None = None


@dataclass(frozen=True, eq=False)
class Symptom:
    """One thing that goes wrong with a queue, and what a careful engineer does about it.

    Without `steps` it only pages, without a `plan` it is only counted, or where a scan detects it,
    only reported. `speaks` says whether a call counts as evidence; `outlives_the_timeout` whether
    messages received before a change of the queue still show it; `notifies_callers` that its page
    is about who calls, so that it pages even where it can fix. While a case of one that it
    `gives_way_to` is open, or a scan has found one in the same round, on its queue or one whose
    messages that takes, it is not taken up: that says it better, or has to be fixed first. `shows`
    names the attributes that its page shows, set or not. Where many queues have it at once,
    `mass_advice` says what to look for, and `mass_look`, given the ARN of one of them, the command
    to begin with.
    """

    name: str
    sentence: str
    plan_in_words: str
    aws_page: str
    seen_as: tuple[SeenAs, ...] = ()
    needs: frozenset[Need] = frozenset()
    steps: tuple[type[AttributeStep], ...] = ()
    plan: Callable[[Facts, Limits], Plan | Refusal] | None = None
    autonomy: Mode | None = None
    shows: tuple[str, ...] = ()
    mass_advice: str = "Look for what these queues have in common: a deployment, a key, a network."
    mass_look: Callable[[str], str] = no_command
    speaks: Callable[[FailedCall], bool] = any_call
    outlives_the_timeout: bool = False
    notifies_callers: bool = False
    gives_way_to: frozenset[str] = frozenset()
    evidence: EvidenceNeeded = field(default_factory=EvidenceNeeded)
    detection: Detection | None = None
    caught: tuple[Caught, ...] = ()
    detected: tuple[Detected, ...] = ()
    near_misses: tuple[NearMiss, ...] = ()

    @property
    def every_need(self) -> frozenset[Need]:
        """What it takes to find it without a failed call, and to plan."""
        return self.needs | (self.detection.needs if self.detection else frozenset())

    @property
    def is_of_configuration(self) -> bool:
        return bool(self.detection and self.detection.of_configuration)

    @property
    def notifies_anyway(self) -> bool:
        """Whether people are to know of it though nothing can be written."""
        return self.notifies_callers or not self.steps

    @property
    def runbook(self) -> str:
        return f"docs/runbooks/{self.name}.md"

    @property
    def ships_as(self) -> str:
        """How far it goes out of the box, in a word."""
        if self.plan is None:
            return "count only" if self.detection is None else "report only"
        return "page only" if self.autonomy is None else str(self.autonomy)

    def matches(self, call: FailedCall) -> bool:
        return any(each.fits(call) for each in self.seen_as)
