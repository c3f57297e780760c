"""Plans to send dead letters back, and what speaks against one; nothing is asked here.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta

from functions.healing.case import Case
from functions.healing.causes import CAUSES, PROVEN, Explained, explained_by, still_shows
from functions.healing.facts import Facts, SourceQueue
from functions.healing.letter_readers import who_reads, who_takes
from functions.healing.look_commands import redrive_preview
from functions.healing.measuring import PERIOD
from functions.healing.mode import Mode
from functions.healing.network_only import ARRIVING, CURE, LEAVING, keeps_out
from functions.healing.plain_text import counted
from functions.healing.plan import Plan, Refusal
from functions.healing.queue_defaults import number_in
from functions.healing.queue_names import parts_of
from functions.healing.redrive_consent import REDRIVE_TAG, redrive_is_off
from functions.healing.redrive_step import HELD, RedriveDeadLetters
from functions.healing.redrive_words import Outlook
from functions.healing.retention_clock import TimeLeft, left_by_age
from functions.healing.sole_source import SoleSource
from functions.healing.steps import SetMessageRetention

# While one of them is open or found, letters would die again, or others with them.
MENDED_FIRST = CAUSES | {"dead_letters_arriving"}
_BEGAN_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def explained(facts: Facts) -> Explained:
    """What explains the letters that wait; where nobody knows since when they do, whatever may."""
    measured = facts.measured
    if measured is None:
        return explained_by(facts.source_cases, _always(facts.source_cases))
    if not _age_is_known(facts):
        longest = timedelta(seconds=facts.retention_seconds)
        return explained_by(facts.source_cases, measured.until - longest)
    # The last minute's value was measured within it.
    began_at = measured.until - PERIOD - timedelta(seconds=measured.oldest_age_seconds_now)
    if measured.least_visible and not measured.deleted:
        # What was there all the while is no younger, whatever the metric leaves out.
        began_at = min(began_at, measured.since)
    return explained_by(facts.source_cases, began_at)


def time_left(facts: Facts) -> TimeLeft:
    """Until the first letter expires."""
    kept_seconds = facts.retention_seconds
    if facts.measured is None or not _age_is_known(facts):
        return TimeLeft(timedelta(0), timedelta(seconds=kept_seconds))
    longest = max(map(_kept_seconds, facts.dead_letter_sources or ()), default=0)
    age_seconds = facts.measured.oldest_age_seconds_now
    return left_by_age(age_seconds, kept_seconds, longest, is_fifo=facts.is_fifo)


def send_back(facts: Facts, because: str) -> Plan | Refusal:
    """All of them to where they died, and before that the longest retention where it is close."""
    refusal = next((found for each in _AGAINST if (found := each(facts))), None)
    if refusal is not None:
        return refusal
    (queue,), source = facts.dead_letter_sources or (), facts.sole_source
    assert source is not None  # noqa: S101 - `_shared` has refused the others
    outlook = Outlook(facts, queue, source, time_left(facts))
    steps = [RedriveDeadLetters(HELD, queue.queue_arn), *_kept_longer(facts, outlook)]
    doubts = tuple(_doubts(facts, source))
    reason = ". ".join((because, *doubts, *outlook.sentences(raised=len(steps) > 1)))
    seen_first = Mode.PROPOSE if doubts else Mode.HEAL
    return Plan(tuple(steps), reason, at_most=min(seen_first, source.mode or Mode.OBSERVE))


def _kept_longer(facts: Facts, outlook: Outlook) -> Iterator[SetMessageRetention]:
    longest = SetMessageRetention.maximum
    if outlook.could_lose and facts.retention_seconds < longest:
        yield SetMessageRetention(facts.retention_seconds, longest)


def _doubts(facts: Facts, source: SoleSource) -> Iterator[str]:
    """What a person is to see first."""
    if not _age_is_known(facts):
        yield "Nobody has measured since when letters wait: a person has to see this first"
    for case in explained(facts).said:
        yield (
            f"Nothing proves {case.symptom} mended ({case.reason[:80]}): "
            "a person has to see this first"
        )
    if facts.is_fifo:
        yield (
            f"Order will mix: {facts.visible:,} go in behind and among others, of which "
            f"{source.deletes_per_second:.1f} a second are handled"
        )


def _nothing_waits(facts: Facts) -> Refusal | None:
    if facts.visible and facts.dead_letter_sources:
        return None
    return Refusal("need_already_met", "no dead letter waits there any more", becomes=None)


def _forbidden(facts: Facts) -> Refusal | None:
    """A queue that nobody gave to Mendq is not sent to; the dead letters' own is asked before."""
    source = facts.sole_source
    for arn, tags in ((facts.queue_arn, facts.tags), *_named(source)):
        if redrive_is_off(tags):
            return Refusal("redrive_off", f"the tag {REDRIVE_TAG} of {arn} forbids it", None)
    if source is not None and source.mode is None:
        reason = f"{source.queue_arn}, where they would go, is not managed by Mendq"
        return Refusal("source_not_managed", reason, becomes=None)
    return None


def _named(source: SoleSource | None) -> Iterator[tuple[str, dict[str, str]]]:
    if source is not None:
        yield source.queue_arn, dict(source.tags)


def _shared(facts: Facts) -> Refusal | None:
    sources = facts.dead_letter_sources or ()
    if facts.sole_source is not None and [facts.sole_source.queue_arn] == list(facts.source_arns):
        return None
    others = (
        f"it takes the letters of {len(sources)} queues"
        if len(sources) > 1
        else ("it takes the letters of another queue too, which keeps Mendq out")
    )
    reason = (
        f"{others}, and nobody can tell a move task whose letters to take: one source's alone are "
        "sent back by their DeadLetterQueueSourceArn, by hand"
    )
    mended = [each.queue_arn for each in explained(facts).mended]
    look = redrive_preview((mended or [sources[0].queue_arn])[0])
    return Refusal("shared_dead_letters", reason, next_command=look)


def _dies_further(facts: Facts) -> Refusal | None:
    if not facts.attributes.get("RedrivePolicy"):
        return None
    reason = "it has a dead-letter queue itself: letters that are only held die further there"
    return Refusal("letters_die_further", reason, becomes=None)


def _read(facts: Facts) -> Refusal | None:
    reader = who_reads(facts)
    if reader is None:
        return None
    reason = f"{reader}: whoever reads them may be at work on them, or send them back himself"
    return Refusal("letters_are_read", reason, becomes=None)


def _taken(facts: Facts) -> Refusal | None:
    """An approval waits until that is over."""
    taken = who_takes(facts)
    if taken is None:
        return None
    reason = f"{taken}: whoever does that may be at work on them, or send them back himself"
    return Refusal("letters_are_taken", reason, becomes=None)


def _moves(facts: Facts) -> Refusal | None:
    if not facts.move_task_running:
        return None
    reason = "a move task runs on it, or ran within the last 42 hours"
    return Refusal("move_task_running", reason, becomes=None)


def _cause_first(facts: Facts) -> Refusal | None:
    """Not of what is only watched after it was proven mended."""
    watched = {each.symptom for each in facts.source_cases if each.state in PROVEN}
    known = sorted((facts.open_symptoms & MENDED_FIRST) - watched)
    shown = [f"{each.symptom} at {_name(each)}" for each in facts.source_cases if still_shows(each)]
    if not shown and not known:
        return None
    reason = f"{(shown or known)[0]} is open: letters that go back now would die again"
    return Refusal("cause_first", reason, becomes=None)


def _not_mended(facts: Facts) -> Refusal | None:
    found = explained(facts)
    if found.standing:
        case = found.standing[0]
        reason = f"{case.symptom} at {_name(case)} is {case.state}, so nobody has mended it"
        return Refusal("cause_not_mended", reason, becomes=None)
    if not found.mended:
        reason = "no case at its source explains these letters and is mended"
        return Refusal("no_mended_cause", reason, becomes=None)
    return None


def _arrive(facts: Facts) -> Refusal | None:
    """Only known where everything was mended before the first that was measured."""
    measured, mended = facts.measured, explained(facts).mended
    if measured is None or any(each.at > measured.since for each in mended):
        return None
    if measured.letters_risen < 1 or measured.letters_arrived < 1:
        return None
    risen = counted(measured.letters_risen, "letter")
    reason = f"{risen} came since it was mended: something else kills messages"
    return Refusal("letters_arrive", reason, becomes=None)


def _for_one_network(facts: Facts) -> Refusal | None:
    """SQS itself would be denied, in the midst of the letters."""
    source = (facts.dead_letter_sources or ())[0]
    for arn, attributes, actions in (
        (facts.queue_arn, facts.attributes, LEAVING),
        (source.queue_arn, source.attributes, ARRIVING),
    ):
        fault = keeps_out(attributes.get("Policy", ""), arn, actions)
        if fault is not None:
            reason = f"{arn}: {fault}, and so SQS where it moves letters. To let it: {CURE}"
            return Refusal(
                "network_only_policy", reason, next_command=redrive_preview(source.queue_arn)
            )
    return None


# In this order; the first that speaks is told.
_AGAINST: tuple[Callable[[Facts], Refusal | None], ...] = (
    _nothing_waits,
    _shared,
    _forbidden,
    _dies_further,
    _read,
    _taken,
    _moves,
    _cause_first,
    _not_mended,
    _arrive,
    _for_one_network,
)


def _age_is_known(facts: Facts) -> bool:
    """What lies there has an age; SQS leaves out of it what was received too often."""
    return facts.measured is not None and facts.measured.oldest_age_seconds_now > 0


def _always(cases: Iterable[Case]) -> datetime:
    """Before all of them."""
    return min((each.at for each in cases), default=_BEGAN_LONG_AGO)


def _name(case: Case) -> str:
    return parts_of(case.queue_arn).name


def _kept_seconds(source: SourceQueue) -> int:
    return number_in(source.attributes, "MessageRetentionPeriod")
