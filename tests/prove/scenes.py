"""Case histories that faults strike: the beginning, and the retries after a fault.

A turn is one delivery, one minute of follow_up or one asking of an operator; it answers whether it
went through.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from mendq.model.mode import Mode
from mendq.model.queue import RedrivePolicy
from tests.account.account import make_settings
from tests.account.faults import REDELIVERED_AFTER_MINUTES
from tests.heal.operators import fail_calls, load_newest_case, roll_back, send_decision
from tests.heal.restoring import deny_calls, deploy_policy, make_pinned_queue
from tests.prove import amiss
from tests.prove.openings import (
    ASKED_EVERY_MINUTES,
    FOLLOWED_EVERY_MINUTES,
    Scene,
    Turn,
    approve,
    approve_case,
    asked_of_owner,
    call_of,
    make_delivery,
    queue,
    waiting_case,
)
from tests.prove.world import World
from tests.scan.scanner import Scanner


def _fix_queue(world: World) -> Turn:
    return make_delivery(world, queue(world))


def _propose_fix(world: World) -> Turn:
    return make_delivery(world, queue(world, "propose"))


def _refuse_fix(world: World) -> Turn:
    """One and a half times its visibility timeout is more than the ceiling."""
    return make_delivery(world, queue(world, VisibilityTimeout="800"))


def _only_paged(world: World) -> Turn:
    return make_delivery(
        world, queue(world, KmsMasterKeyId="alias/orders"), **call_of("kms_key_unusable")
    )


def _pair(world: World) -> Turn:
    """Two attributes in one write."""
    world.account.settings = make_settings(autonomy={"fifo_throttled": Mode.HEAL})
    return make_delivery(world, queue(world), **call_of("fifo_throttled"))


def _ineffective(world: World, **tags: str) -> None:
    """Fixed, and the calls fail as before."""
    queue_arn = queue(world)
    world.account.tag(queue_arn, mendq="heal", **tags)
    fail_calls(world.account, queue_arn)
    world.account.later(minutes=40)
    fail_calls(world.account, queue_arn, "again")
    world.account.later(minutes=1)


def _next_step(world: World) -> Turn:
    _ineffective(world)
    world.heal_is_up = False
    world.minute()
    world.heal_is_up = True
    world.account.later(minutes=6)
    return asked_of_owner(world)


def _verify_fix(world: World) -> Turn:
    queue_arn = queue(world)
    fail_calls(world.account, queue_arn)
    world.account.later(minutes=20)
    world.deletes(queue_arn)
    return world.minute


def _did_not_help(world: World) -> Turn:
    """follow_up finds it ineffective and calls heal, which takes the next step."""
    _ineffective(world)
    return world.minute


def _no_step_left(world: World) -> Turn:
    """The tag's need is met, so heal calls a person."""
    _ineffective(world, **{"mendq:max-processing-seconds": "25"})
    return world.minute


def _nobody_acted(world: World) -> Turn:
    """Heal was down for a day, so follow_up calls a person."""
    _ineffective(world)
    world.heal_is_up = False
    world.minute()
    world.account.later(hours=24)
    return world.minute


def _send_word(word: str) -> Callable[[World], Turn]:
    def begin(world: World) -> Turn:
        case_id = waiting_case(world)
        return lambda: bool(send_decision(world.account, word, case_id))

    return begin


def _roll_back(world: World) -> Turn:
    fail_calls(world.account, queue(world))
    world.account.later(minutes=5)
    case_id = load_newest_case(world.account).case_id
    return lambda: bool(roll_back(world.account, case_id))


DLQ = "dlq_missing"


def _approve_finding(world: World, symptom: str, queue_arn: str) -> None:
    """A scan found it and a person approved; nobody has carried it out."""
    world.find(queue_arn, symptom)
    world.account.later(minutes=5)
    approve(world, load_newest_case(world.account).case_id)


def _without_dlq(world: World) -> str:
    """Its messages come back."""
    account = world.account
    queue_arn = account.queue("orders", VisibilityTimeout="30")
    account.clients.sqs.send_message(QueueUrl=account.url(queue_arn), MessageBody="poison")
    account.later(days=1)
    Scanner(account).put_metrics_of_returning_message(queue_arn)
    return queue_arn


def _made_and_attached(world: World) -> Turn:
    _approve_finding(world, DLQ, _without_dlq(world))
    return asked_of_owner(world)


def _made_again(world: World) -> Turn:
    account = world.account
    messages = account.queue("any-name", tag=None)
    queue_arn = account.queue("orders", RedrivePolicy=RedrivePolicy(messages, 5).text)
    account.clients.sqs.delete_queue(QueueUrl=account.url(messages))
    account.later(days=1)
    _approve_finding(world, DLQ, queue_arn)
    return asked_of_owner(world)


def _detach_dlq(world: World) -> Turn:
    turn = _made_and_attached(world)
    assert turn()
    world.account.later(minutes=5)
    case_id = load_newest_case(world.account).case_id
    return lambda: bool(roll_back(world.account, case_id))


def _put_back(world: World) -> Turn:
    """A deployment overwrote the pinned policy and a person approved."""
    account = world.account
    queue_arn = make_pinned_queue(account)
    deploy_policy(account, queue_arn)
    account.later(minutes=25)
    deny_calls(account, queue_arn)
    account.later(minutes=5)
    approve(world, load_newest_case(account).case_id)
    return asked_of_owner(world)


def _messages_of_a_fixed_cause(world: World) -> str:
    """Their source's visibility timeout was too short, and the longer one is proven; they would
    expire soon.
    """
    account = world.account
    dead = account.queue("orders-dlq", MessageRetentionPeriod="432000")
    source = account.queue(
        "orders", VisibilityTimeout="30", RedrivePolicy=RedrivePolicy(dead, 5).text
    )
    account.clients.sqs.send_message(QueueUrl=account.url(dead), MessageBody="message")
    account.later(days=1)
    fail_calls(account, source)
    account.later(minutes=20)
    world.deletes(source)
    assert world.minute()
    account.later(minutes=5)
    for minutes in (330, 90, 10):
        at = account.now - timedelta(minutes=minutes)
        Scanner(account).put_metrics(dead, at, visible=1, age=max(0, 18_000 - 60 * minutes))
        Scanner(account).put_metrics(source, at, deleted=3_600)
    return dead


def _messages_taken_up(world: World) -> Turn:
    """Retention is raised, and no message is moved."""
    _approve_finding(world, "dlq_messages_waiting", _messages_of_a_fixed_cause(world))
    return asked_of_owner(world)


SCENES = (
    *(
        Scene(f"heal, {name}", begin, goal, REDELIVERED_AFTER_MINUTES)
        for name, begin, goal in (
            ("fixed", _fix_queue, "applied"),
            ("two attributes at once", _pair, "applied"),
            ("proposed", _propose_fix, "proposed"),
            ("refused", _refuse_fix, "refused"),
            ("only paged", _only_paged, "escalated"),
            ("fixed while the case bucket is down", amiss.bucket_down, "applied"),
        )
    ),
    *(
        Scene(name, begin, goal, FOLLOWED_EVERY_MINUTES)
        for name, begin, goal in (
            ("heal, taking up what was approved", approve_case, "applied"),
            ("heal, taking up what did not help", _next_step, "applied"),
            ("attach_dlq, a queue made and attached", _made_and_attached, "applied"),
            ("attach_dlq, a queue made again", _made_again, "applied"),
            ("restore_policy, a pinned policy put back", _put_back, "applied"),
            ("redrive, messages of a fixed cause taken up", _messages_taken_up, "applied"),
            ("follow_up, verified and watched", _verify_fix, "watching"),
            ("follow_up, ineffective, and heal's next step", _did_not_help, "applied"),
            ("follow_up, ineffective, and heal escalates", _no_step_left, "escalated"),
            ("follow_up, escalated", _nobody_acted, "escalated"),
            ("follow_up, overridden", amiss.overrule_fix, "overridden"),
            ("follow_up, a fix that died at its write", amiss.fix_died, "applied"),
            ("follow_up, a rollback that died at its write", amiss.roll_back_died, "rolled_back"),
            ("approve, and the plan would be another", amiss.approved_too_late, "expired"),
        )
    ),
    *(
        Scene(name, begin, goal, ASKED_EVERY_MINUTES)
        for name, begin, goal in (
            ("approve, and heal's write", _send_word("approve"), "applied"),
            ("approve, declined", _send_word("decline"), "declined"),
            ("approve, closed", amiss.close_case, "closed"),
            ("rollback", _roll_back, "rolled_back"),
            ("rollback, a person's value kept", amiss.roll_back_of_a_persons_value, "applied"),
            ("rollback, a DLQ detached", _detach_dlq, "rolled_back"),
        )
    ),
)
