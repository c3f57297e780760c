"""What speaks against sending dead letters back, each with its refusal; nothing is asked here.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from functions.healing.case import Case
from functions.healing.causes import CAUSES, PROVEN, still_shows
from functions.healing.facts import Facts
from functions.healing.letter_readers import who_reads, who_takes
from functions.healing.look_commands import redrive_preview
from functions.healing.network_only import ARRIVING, CURE, LEAVING, keeps_out
from functions.healing.plain_text import counted
from functions.healing.plan import Refusal
from functions.healing.queue_names import parts_of
from functions.healing.redrive_consent import REDRIVE_TAG, redrive_is_off
from functions.healing.sole_source import SoleSource
from functions.healing.waiting_letters import explained

# While one of them is open or found, letters would die again, or others with them.
MENDED_FIRST = CAUSES | {"dead_letters_arriving"}


def first_against(facts: Facts) -> Refusal | None:
    """The first that speaks against it; None where nothing does: then it has a sole source."""
    return next((found for each in _AGAINST if (found := each(facts))), None)


def _nothing_waits(facts: Facts) -> Refusal | None:
    if facts.visible and facts.dead_letter_sources:
        return None
    return Refusal("need_already_met", "no dead letter waits there any more", becomes=None)


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


def _name(case: Case) -> str:
    return parts_of(case.queue_arn).name


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
