"""The classes that an entry of the catalogue is made of.

Each symptom is one entry: an instance of `ReportedSymptom`, `NotifiedSymptom` or `FixedSymptom`.
The class says what Mendq does about the fault: it lists it in a report, it notifies people, or it
fixes it. The entry says how the fault shows, which facts Mendq needs, what it would change, and
gives examples, which are also the entry's tests.

A fault shows in two ways, and an entry has one of them or both:

- Calls fail. CloudTrail records them, and `FailedCallPattern` says which records mean this symptom.
- The queue's attributes, metrics or consumers show it although no call fails. A scan reads them,
  and `Detection` says what is wrong.

An entry is pure. It uses only the facts that it is given, and reads neither AWS nor a clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from mendq.model.facts import Facts, Need
from mendq.model.failed_call import ERROR_CODES_BY_SYMPTOM, FailedCall
from mendq.model.limits import Limits
from mendq.model.message_calls import MESSAGE_CALLS
from mendq.model.mode import Mode
from mendq.model.plan import Plan, Refusal
from mendq.model.severity_class import SeverityClass
from mendq.model.steps import AttributeStep, SetVisibilityTimeout
from mendq.model.tags import QueueTag
from mendq.notifications.commands import describe_quota
from mendq.notifications.next_steps import runbook_path
from mendq.notifications.text import Section

SQS_GUIDE = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide"
DLQ_GUIDE = f"{SQS_GUIDE}/sqs-dead-letter-queues.html"
SEND_CALLS = frozenset({"SendMessage", "SendMessageBatch"})
# Names of the symptoms for which tests/catalogue/recorded holds a record that AWS itself wrote.
# There is none so far, so every symptom that rests on failed calls is unconfirmed.
CONFIRMED_SYMPTOM_NAMES: frozenset[str] = frozenset()
# A function that plans the change for a queue, or says why Mendq makes none.
Planner = Callable[[Facts, Limits], Plan | Refusal]
Steps = tuple[AttributeStep, ...]
# A function that returns further sections of the notification about a queue.
ExtraSections = Callable[[Facts], tuple[Section, ...]]


def accept_every_subject(_subject: object) -> bool:
    """Return True for every subject: the default for a condition that an entry does not need."""
    return True


@dataclass(frozen=True)
class QuotaSection:
    """The section of a notification about an AWS quota that the queue has reached.

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
        """Return the notification's section about this quota, for the queue in `facts`."""
        section = describe_quota(
            facts.queue_arn, self.name, self.default, self.service_code, self.quota_code
        )
        return (section,)


def is_message_call(call: FailedCall) -> bool:
    """Return True if the call sends, receives, deletes or hides messages.

    Other calls only read or change a queue's configuration. For several symptoms such calls are no
    evidence, because they say nothing about the queue's messages.
    """
    return call.event_name in MESSAGE_CALLS


@dataclass(frozen=True)
class FailedCallPattern:
    """A pattern of failed calls in CloudTrail that means the symptom.

    Attributes:
        event_names: Names of the API calls, such as `SendMessage`; None for any call.
        error_code: The error code in its canonical spelling (`mendq/model/failed_call.py`).
        fits_message: A condition on the error message. The message may contain text that the caller
            chose, so the condition must not trust it.
        fits_queue: A condition on the queue's ARN, which is None if the record names no queue.
    """

    event_names: frozenset[str] | None
    error_code: str
    fits_message: Callable[[str], bool] = accept_every_subject
    fits_queue: Callable[[str | None], bool] = accept_every_subject

    def fits(self, call: FailedCall) -> bool:
        """Return True if the failed call meets all conditions of this pattern."""
        return (
            call.error_code == self.error_code
            and (self.event_names is None or call.event_name in self.event_names)
            and self.fits_queue(call.queue_arn)
            and self.fits_message(call.error_message)
        )


def make_code_patterns(
    name: str, fits_queue: Callable[[str | None], bool] = accept_every_subject
) -> tuple[FailedCallPattern, ...]:
    """Return one pattern for each error code that `failed_call.py` lists for a symptom.

    Args:
        name: The symptom's name, a key of `ERROR_CODES_BY_SYMPTOM` in `mendq/model/failed_call.py`.
        fits_queue: A condition on the queue's ARN, the same for all patterns.
    """
    return tuple(
        FailedCallPattern(None, code, fits_queue=fits_queue)
        for code in ERROR_CODES_BY_SYMPTOM[name]
    )


@dataclass(frozen=True)
class EvidenceKind:
    """A kind of evidence for a symptom, and the severity class of findings that rest on it.

    Attributes:
        severity_class: The class of the findings.
        text: The evidence in words, for tables. Empty if the symptom has only one kind.
        is_of_template: True if a template can show this kind. If a symptom has such kinds, lint
            finds no others.
    """

    severity_class: SeverityClass
    text: str = ""
    is_of_template: bool = False


@dataclass(frozen=True)
class DetectedFault:
    """A fault that a detection found in a queue.

    Attributes:
        because: A sentence with the numbers. The notification begins with it.
        missing_queue_arn: The ARN of a missing queue that this queue names; empty for most faults.
            People are asked about the missing queue once, however many queues name it.
        seconds_left: Seconds until the first message is lost; None if that time is not known or the
            fault loses none.
        source_arns: The sources that the fault concerns if the queue is a DLQ; None if all of them.
        possible_source_arns: All queues that can have sent the messages of this DLQ. The finding
            waits for the sources' symptoms only if each of these queues shows one. Empty if the
            symptom of one source is enough.
        should_page: False if the page about messages that arrive in the DLQ must not wait for this
            fault, because it is recorded without a page.
        mapping_id: The event source mapping with the fault; empty if it is in no mapping.
        is_hygiene: True if the queue may be meant to be like that. People hear of it once, after
            all other findings.
        evidence_kind: The kind of evidence, one of the symptom's `evidence_kinds`; None for the
            first of them.
    """

    because: str
    missing_queue_arn: str = ""
    seconds_left: float | None = None
    source_arns: tuple[str, ...] | None = None
    possible_source_arns: tuple[str, ...] = ()
    should_page: bool = True
    mapping_id: str = ""
    is_hygiene: bool = False
    evidence_kind: EvidenceKind | None = None


# What a detection needs that compares sends, receives and deletes of a queue that is no DLQ. A
# message movement task makes these counts misleading, and an open case may explain them.
NEEDS_OF_SUMS_OF_A_SOURCE = frozenset(
    {
        Need.QUEUE,
        Need.MEASUREMENTS,
        Need.MOVE_TASKS,
        Need.DLQ_SOURCES,
        Need.OPEN_CASES,
    }
)


@dataclass(frozen=True)
class Detection:
    """The way in which the hourly scan finds the symptom, although no call fails.

    Attributes:
        detect: Returns the fault, or None if the queue does not have it. It reads only the facts in
            `needs`, and the attributes and tags, which every scan reads.
        needs: The facts to gather before `detect`. If the Lambda consumers are among them, a queue
            whose consumers cannot be read is not judged for the symptom.
        is_possible: Returns True if attributes, tags, consumers and the DLQ's attributes make the
            symptom possible. It must not ask what the queue or its DLQ holds now, because a queue
            whose consumer fails fast is empty at nearly every moment. `must_measure` in
            `mendq/model/traffic.py` decides if the queue's metrics are read.
        is_of_configuration: True if the fault is in the configuration and not in the traffic. Then
            the scan runs `detect` before it reads metrics. If Mendq has a plan for the fault, it
            handles only a few new queues a day. Many queues with the fault at once do not mean a
            common cause.
        is_measured_last: True if the symptom does no harm yet, or only costs money. The traffic of
            the queue need not show it, so a queue in use is measured for it after all others.
        is_hidden_in_traffic: True if the traffic of a queue need not show the symptom, although it
            does harm. A queue in use is measured for it after all others too.
        is_left_to_suspects: True if `detect` needs no metric but a call that only suspects are
            worth. The scan runs it for suspects, and for queues in use whose sums are all 0.
        metric_kinds: The kinds of metrics (`METRICS_BY_KIND`) that `detect` needs; empty for the
            usual ones. The scan reads only these kinds if every symptom for which it measures the
            queue names kinds.
        detect_fact: Returns the fault if facts that no metric shows prove it, at the given time;
            None if there is no such way. It decides only if the queue has no measurement: a
            measurement knows more, such as receives by another consumer.
    """

    detect: Callable[[Facts], DetectedFault | None]
    needs: frozenset[Need] = frozenset({Need.QUEUE})
    is_possible: Callable[[Facts], bool] = accept_every_subject
    is_of_configuration: bool = False
    is_measured_last: bool = False
    is_hidden_in_traffic: bool = False
    is_left_to_suspects: bool = False
    metric_kinds: tuple[str, ...] = ()
    detect_fact: Callable[[Facts, datetime], DetectedFault | None] | None = None

    def find_fault(self, facts: Facts, now: datetime) -> DetectedFault | None:
        """Return the fault of a queue, by facts alone if the queue has no measurement."""
        fault = self.detect(facts)
        if fault is None and facts.measurement is None and self.detect_fact is not None:
            return self.detect_fact(facts, now)
        return fault


@dataclass(frozen=True)
class CallExample:
    """An example of a failed call that means the symptom.

    `expected_outcome` is the result of the entry's plan for the queue in `facts`: the steps, or the
    code of the refusal if Mendq must not change the queue. Empty if the entry has no plan.
    """

    title: str
    call: FailedCall
    facts: Facts | None = None
    expected_outcome: Steps | str = ()


@dataclass(frozen=True)
class QueueExample:
    """An example of a queue in which the entry's detection finds the fault.

    `expected_outcome` is the result of the entry's plan: the steps, or the code of the refusal if
    Mendq must not change the queue. Empty if the entry has no plan.
    """

    title: str
    facts: Facts
    expected_outcome: Steps | str = ()


@dataclass(frozen=True)
class CallNearMiss:
    """A failed call that looks like the symptom and must not match the entry."""

    title: str
    call: FailedCall


@dataclass(frozen=True)
class QueueNearMiss:
    """A queue that looks like the symptom, and in which the detection must find nothing."""

    title: str
    facts: Facts


@dataclass(frozen=True)
class RefusalExample:
    """A queue that the entry's plan must not change, with the code of the refusal."""

    title: str
    facts: Facts
    code: str


NearMiss = CallNearMiss | QueueNearMiss | RefusalExample


@dataclass(frozen=True)
class Advice:
    """Advice to people if many queues have the symptom at once.

    The cause is then not in a single queue.

    Attributes:
        sentence: Where to look for the common cause; empty if there is no advice.
        make_command: Takes the ARN of one of these queues, and returns a command that shows more,
            or an empty text.
    """

    sentence: str = "Look for what these queues have in common: a deployment, a key, a network."
    make_command: Callable[[str], str] = lambda _: ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Symptom:
    """A fault of a queue, and everything that Mendq knows about it.

    Attributes:
        name: The symptom's name in settings, metrics, cases and file names.
        sentence: The fault in one sentence, for people.
        plan_in_words: Mendq's answer in one sentence, for people.
        first_step: What a person does about the fault, in one short sentence for tables.
        aws_page: The URL of AWS's page about the fault.
        evidence_kinds: The kinds of evidence with their severity classes, the usual kind first. If
            Mendq only counts the symptom, these are only kinds that templates show.
        seen_as: Patterns of failed calls that mean the symptom; empty if no call fails.
        is_evidence: Returns True if a matching call counts as evidence about the queue.
        detection: The way in which a scan finds the fault; None if only failed calls show it.
        tags: The queue tags that the detection and the plan read, except `TAGS_OF_EVERY_QUEUE`. If
            no symptom declares a `mendq:...` tag, `tag_not_understood` reports it as a mistake.
        examples: Returns calls and queues that have the fault, and others that only look like it.
            They are built only when a test asks for them.
    """

    name: str
    sentence: str
    plan_in_words: str
    first_step: str
    aws_page: str
    evidence_kinds: tuple[EvidenceKind, ...] = ()
    seen_as: tuple[FailedCallPattern, ...] = ()
    is_evidence: Callable[[FailedCall], bool] = accept_every_subject
    detection: Detection | None = None
    tags: tuple[QueueTag, ...] = ()
    examples: Callable[[], tuple[CallExample | QueueExample | NearMiss, ...]]

    # True if people are notified even if Mendq has nothing to write.
    notifies_anyway = True

    # Fields of the subclasses that notify or fix. A symptom that is only reported has the defaults.
    needs: frozenset[Need] = field(default=frozenset(), init=False)
    plan: Planner | None = field(default=None, init=False)
    steps: tuple[type[AttributeStep], ...] = field(default=(), init=False)
    autonomy: Mode | None = field(default=None, init=False)
    shown_attributes: tuple[str, ...] = field(default=(), init=False)
    gives_way_to: frozenset[str] = field(default=frozenset(), init=False)
    advice_if_many: Advice = field(default=Advice(""), init=False)
    shared_attribute: str = field(default="", init=False)

    @staticmethod
    def extra_sections(_facts: Facts) -> tuple[Section, ...]:
        """Return an empty tuple: the notification has no further sections."""
        return ()

    @property
    def all_needs(self) -> frozenset[Need]:
        """The facts that the detection and the plan need together."""
        return self.needs | (self.detection.needs if self.detection else frozenset())

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that plans for the symptom write, as `AttributeStep.attribute` names them.

        Not all are SQS attributes: creating a DLQ and moving messages have names of their own.
        """
        return tuple(step.attribute for step in self.steps)

    def find_class(self, fault: DetectedFault | None = None) -> SeverityClass:
        """Return the severity class of a fault that a scan found.

        Args:
            fault: The fault; None for the class that the symptom usually has.

        Raises:
            ValueError: The symptom has no class, because Mendq only counts it.
        """
        if self.is_only_counted:
            message = f"{self.name} is only counted, so it has no severity class"
            raise ValueError(message)
        kind = fault.evidence_kind if fault else None
        return (kind or self.evidence_kinds[0]).severity_class

    @property
    def is_only_counted(self) -> bool:
        """True if a deployed queue has no class for it, because Mendq only counts failed calls."""
        return all(kind.is_of_template for kind in self.evidence_kinds)

    def find_class_in_template(self, fault: DetectedFault) -> SeverityClass:
        """Return the severity class of a fault that lint found in a template."""
        kind = fault.evidence_kind or self.evidence_kinds_in_template[0]
        return kind.severity_class

    @property
    def evidence_kinds_in_template(self) -> tuple[EvidenceKind, ...]:
        """The kinds of evidence that a template can show: all, if no kind is marked for it."""
        kinds_of_template = tuple(kind for kind in self.evidence_kinds if kind.is_of_template)
        return kinds_of_template or self.evidence_kinds

    @property
    def is_unconfirmed(self) -> bool:
        """True if failed calls show the symptom, but no real AWS record confirms their form."""
        return bool(self.seen_as) and self.name not in CONFIRMED_SYMPTOM_NAMES

    @property
    def is_of_configuration(self) -> bool:
        """True if a scan finds the fault in the queue's configuration and not in its traffic."""
        return bool(self.detection and self.detection.is_of_configuration)

    @property
    def is_of_template(self) -> bool:
        """True if only a template shows the fault, so that no scan finds it."""
        return Need.PRODUCERS in self.all_needs

    @property
    def can_show_after_fix(self) -> bool:
        """True if messages that are in flight during the fix can still show the symptom later.

        SQS applies a new visibility timeout at the next receive. Messages in flight keep the old
        one.
        """
        return SetVisibilityTimeout in self.steps

    @property
    def runbook(self) -> str:
        """Path of the symptom's runbook, such as `docs/runbooks/dlq_missing.md`."""
        return runbook_path(self.name)

    @property
    def default_mode_text(self) -> str:
        """How far Mendq goes with the symptom at most, in words for people."""
        if self.is_of_template:
            return "lint only"
        return "count only" if self.detection is None else "report only"

    def matches(self, call: FailedCall) -> bool:
        """Return True if the failed call means this symptom."""
        return any(pattern.fits(call) for pattern in self.seen_as)


class ReportedSymptom(Symptom):
    """A symptom that Mendq only reports, in scans, lint and the weekly report.

    It opens no case and notifies nobody.
    """


@dataclass(frozen=True, eq=False, kw_only=True)
class NotifiedSymptom(Symptom):
    """A symptom that people are notified of.

    Attributes:
        needs: The facts to gather before `plan`.
        plan: Returns the plan with its steps, or the refusal that says why Mendq changes nothing.
        shown_attributes: Queue attributes that the notification shows, even if they are not set.
        extra_sections: Returns further sections of the notification. People read them before Mendq
            changes anything.
        gives_way_to: Names of symptoms that explain the fault better or must be fixed first. If the
            same scan has found such a symptom on the queue or on one of its sources, Mendq does not
            act on this one. Open cases of such symptoms are checked by `detect` or `plan`.
        advice_if_many: The advice to people if many queues have the symptom at once.
        habit: The end of a sentence in the weekly report, after the name of a queue that has the
            symptom again and again; empty if the report says nothing.
    """

    needs: frozenset[Need] = frozenset({Need.QUEUE})
    plan: Planner = field()
    shown_attributes: tuple[str, ...] = ()
    extra_sections: ExtraSections = lambda _: ()  # type: ignore[assignment]
    gives_way_to: frozenset[str] = frozenset()
    advice_if_many: Advice = Advice()
    habit: str = ""

    @property
    def default_mode_text(self) -> str:
        """How far Mendq goes with the symptom at most, in words for people."""
        return "page only"


@dataclass(frozen=True, eq=False, kw_only=True)
class FixedSymptom(NotifiedSymptom):
    """A symptom that Mendq can fix.

    Attributes:
        steps: The classes of the changes that its plans may contain.
        autonomy: The highest mode, unless the settings name another mode for this symptom. With
            `PROPOSE` a person must approve each change; with `HEAL` Mendq may make it alone.
        notifies_anyway: True if people are notified even if Mendq has nothing to write, because the
            notification is about the callers.
        shared_attribute: The queue attribute whose wrong value several queues may share, so that
            people approve the change once for all of them (`mendq/model/shared_default.py`). Only
            for a fault in the configuration. Empty: each queue is proposed alone.
    """

    steps: tuple[type[AttributeStep], ...] = field()
    autonomy: Mode = Mode.PROPOSE
    notifies_anyway: bool = False
    shared_attribute: str = ""

    @property
    def default_mode_text(self) -> str:
        """How far Mendq goes if the settings set no mode for this symptom: `propose` or `heal`.

        For a symptom that needs `APPROVED_SOURCES`, the text begins with `propose, then`: a person
        must approve the change once for the same source queue before Mendq goes further.
        """
        must_ask_first = Need.APPROVED_SOURCES in self.needs
        return f"{Mode.PROPOSE}, then {self.autonomy}" if must_ask_first else str(self.autonomy)
