"""A lease that ends too early where no call says so: messages are handled twice, and deleted twice.

On a standard queue a late delete answers 200, and NumberOfMessagesDeleted counts it too.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

from functions.healing import lease_needs
from functions.healing.facts import Facts
from functions.healing.lease_needs import MAX_PROCESSING_TAG, LeaseNeed
from functions.healing.metric_commands import metric_command
from functions.healing.plain_text import counted
from functions.healing.plan import Refusal
from functions.healing.queue_names import parts_of, public_url
from functions.healing.states import State
from functions.healing.tags import TagUnreadable


def race_in(facts: Facts) -> str | None:
    """What was counted, in a sentence, where messages were handled twice.

    Dead letters arrive without being counted as sent, as do messages that are moved back; what a
    consumer gives up is received again without a race.
    """
    measured = facts.measured
    if measured is None or facts.move_task_running or facts.takes_dead_letters:
        return None
    if any(each.fails_fast for each in facts.lambda_consumers) or not measured.shows_a_race:
        return None
    surplus = measured.surplus_deletes
    return (
        f"in {measured.hours:.1f} h {counted(measured.deleted - surplus, 'message')} left and "
        f"{counted(measured.deleted, 'delete')} came, about {surplus:,} too many: messages were "
        "handled twice"
    )


def may_race(facts: Facts) -> bool:
    """Whether there is work that could race, or a need that the lease does not cover."""
    return facts.visible + facts.in_flight > 0 or bool(_unmet(facts))


def _unmet(facts: Facts) -> list[LeaseNeed]:
    try:
        return lease_needs.unmet(facts, lease_needs.named(facts))
    except TagUnreadable:
        return []


def race_or_retries(facts: Facts) -> Refusal | None:
    """A page where the counts of a race are those of consumers that fail and then delete twice."""
    measured = facts.measured
    if not facts.found or measured is None or not measured.may_be_retries:
        return None
    reason = (
        f"{facts.found}. Or its consumers fail at first and delete twice in the end, which "
        f"{measured.received:,} receives of {measured.sent:,} sent messages do not rule out: a "
        "longer lease would then only slow the retries"
    )
    look = metric_command(facts.queue_arn, "NumberOfMessagesReceived", "Sum", measured)
    return Refusal(
        "race_or_retries", reason, State.ESCALATED, next_command=look, silent_in_observe=True
    )


def without_named_need(facts: Facts, needs: list[LeaseNeed]) -> Refusal | None:
    """A page where a race was measured and no need above the lease is named: never a guess."""
    if not facts.found or lease_needs.unmet(facts, needs):
        return None
    known = needs and f", although what is named is covered ({needs[0].because})"
    reason = (
        f"{facts.found}. Somebody holds messages longer than the lease of "
        f"{facts.visibility_seconds} s{known or ', and nothing names how long they need'}: tag the "
        f"queue {MAX_PROCESSING_TAG} with the longest that a message may take, in seconds"
    )
    return Refusal(
        "race_without_named_need",
        reason,
        State.ESCALATED,
        next_command=_tag_it(facts.queue_arn),
        silent_in_observe=True,
    )


def _tag_it(queue_arn: str) -> str:
    """SECONDS is the reader's to fill in; as it stands the tag would be refused as unreadable."""
    return (
        f"aws sqs tag-queue --region {parts_of(queue_arn).region} "
        f"--queue-url {public_url(queue_arn)} --tags {MAX_PROCESSING_TAG}=SECONDS"
    )
