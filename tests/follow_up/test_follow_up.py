"""A case's life after the write, against moto: verified, watched, taken up again, handed over."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from mendq.aws.errors import CaseUnreadable, NotificationNotSent
from mendq.cases.context import CaseContext
from mendq.catalogue import CATALOGUE
from mendq.follow_up.follow_up import SECONDS_FOR_A_CASE, Followed, follow_up
from mendq.heal import recover
from mendq.heal.batch import heal_batch
from mendq.heal.resume import take_up
from mendq.model.limits import Limits, Mode
from tests.heal.conftest import Account, settings
from tests.heal.operators import OWNERS, case_of, context_of, move

GET = "before-call.cloudwatch.GetMetricData"


@pytest.fixture
def world(account: Account) -> World:
    return World(account)


class World:
    """An account with follow_up, a heal that it can call, and CloudWatch's count of deletes."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.deletes = 0
        self.heal_is_up = True
        self.called: list[dict[str, str]] = []
        self.looked_at: list[str] = []
        events = account.clients.functions.meta.events
        events.register("before-call.lambda.Invoke", self._invoke)  # type: ignore[arg-type]
        metrics = account.clients.cloudwatch.meta.events
        metrics.register(GET, self._metrics)  # type: ignore[arg-type]

    def _invoke(self, params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]] | None:
        request = json.loads(params["body"])
        self.called.append(request)
        if self.heal_is_up:
            take_up(request, self.account.run())
        return SimpleNamespace(status_code=202), {"StatusCode": 202}

    def _metrics(self, params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]]:
        """Answers for one metric of queues that the account has made, and for nothing else."""
        (query,) = json.loads(params["body"])["MetricDataQueries"]
        metric, stat = query["MetricStat"]["Metric"], query["MetricStat"]["Stat"]
        (dimension,) = metric["Dimensions"]
        asked = (metric["Namespace"], metric["MetricName"], stat, dimension["Name"])
        assert asked == ("AWS/SQS", "NumberOfMessagesDeleted", "Sum", "QueueName")
        assert dimension["Value"] in self._names()
        self.looked_at.append(dimension["Value"])
        values = [float(self.deletes)] if self.deletes else []
        answer = {"MetricDataResults": [{"Id": "deleted", "Values": values}]}
        return SimpleNamespace(status_code=200), answer

    def _names(self) -> set[str]:
        return {each["queue_arn"].rpartition(":")[2] for each in self.account.transitions()}

    def follow(self, remaining_seconds: Callable[[], float] = lambda: 60) -> Followed:
        return follow_up(context_of(self.account), OWNERS, remaining_seconds)

    def minutes(self, count: int, *, each: Callable[[], object] | None = None) -> None:
        for _ in range(count):
            self.account.later(minutes=1)
            if each:
                each()
            followed = self.follow()
            assert followed.errors == {}

    def fail(self, queue: str, word: str, **over: Any) -> None:
        bodies = self.account.late_deletes(queue, f"{word}1", f"{word}2", f"{word}3", **over)
        self.account.heal(bodies)

    def states(self) -> list[str]:
        return [each["to"] for each in self.account.transitions()]


def test_a_fix_that_helps_is_verified_watched_and_closed(world: World) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    world.fail(queue, "a")
    world.deletes = 7
    world.minutes(15)
    assert world.states() == ["applied"]
    world.minutes(4)
    assert world.states() == ["applied", "verified", "watching"]
    assert set(world.looked_at) == {"orders.fifo"}
    world.account.later(hours=48)
    world.follow()
    assert world.states() == ["applied", "verified", "watching", "closed"]
    assert world.called == []
    assert world.account.pages("info") == world.account.pages("urgent") == []
    assert world.follow().open_cases == []


def test_an_idle_queue_proves_nothing_until_somebody_works_with_it(world: World) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    world.fail(queue, "a")
    world.minutes(20)
    assert world.states() == ["applied", "unverified"]
    world.account.later(hours=2)
    world.follow()
    assert world.states() == ["applied", "unverified"]
    world.deletes = 1
    world.account.later(hours=2)
    world.follow()
    assert world.states()[-1] == "verified"


def test_a_fix_that_does_not_help_gets_the_next_bounded_step(world: World) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    world.fail(queue, "a")
    world.account.later(minutes=40)
    world.fail(queue, "b")
    assert world.account.visibility(queue) == 45
    world.minutes(1)
    assert world.account.visibility(queue) == 68
    assert world.states() == ["applied", "ineffective", "applied"]
    first, _, again = world.account.transitions()
    assert again["case_id"] == first["case_id"]
    assert again["n"] == 3
    assert again["evidence"]["failed_calls"] == 6
    attribute = world.account.attribute_item(queue)
    assert attribute["person_value"] == {"S": "30"}


def test_a_write_late_in_a_long_run_is_not_blamed_for_what_failed_before(world: World) -> None:
    """A batch of many queues takes most of a minute: the change stands since it was made."""
    queue = world.account.queue(VisibilityTimeout="30")
    begun, written = world.account.now, world.account.now + timedelta(seconds=55)
    slow = replace(world.account.run(), clock=lambda: written)
    assert not heal_batch(world.account.late_deletes(queue, "a", "b", "c"), slow).errors
    assert world.account.visibility(queue) == 45
    (applied,) = world.account.transitions()
    assert datetime.fromisoformat(applied["at"]) == written
    until_it_arrived = world.account.settings.timing.propagation_seconds + 45
    for seconds in (0, 30, until_it_arrived + 55 - 1):
        world.account.now = begun + timedelta(seconds=seconds)
        world.fail(queue, f"{seconds}-")
        world.minutes(1)
    assert world.states() == ["applied"]
    assert world.account.visibility(queue) == 45
    world.fail(queue, "later")
    world.account.later(minutes=40)
    world.fail(queue, "still")
    world.minutes(1)
    assert world.states()[:2] == ["applied", "ineffective"]


def test_the_next_step_waits_for_the_cooldown(world: World) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    world.fail(queue, "a")
    world.account.later(minutes=5)
    world.fail(queue, "b")
    world.minutes(20)
    assert world.account.visibility(queue) == 45
    assert world.states() == ["applied", "ineffective"]
    assert 1 < len(world.called) <= 5
    world.minutes(10)
    assert world.account.visibility(queue) == 68


def test_after_three_writes_a_day_a_person_is_called_once(world: World) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    world.account.settings = settings(limits=Limits(visibility_ceiling_seconds=9_000))
    for word in "abcd":
        world.fail(queue, word)
        world.account.later(minutes=40)
        world.fail(queue, f"{word}{word}")
        world.minutes(1)
    world.minutes(60, each=lambda: world.fail(queue, f"{world.account.now}"))
    assert world.states().count("applied") == 3
    assert world.states()[-1] == "escalated"
    assert world.account.visibility(queue) == 102
    assert len(world.account.pages("urgent")) == 1


def test_where_no_step_is_left_a_person_is_called(world: World) -> None:
    queue = world.account.queue(VisibilityTimeout="10")
    world.account.tag(queue, **{"mendq:max-processing-seconds": "20"})
    world.fail(queue, "a")
    assert world.account.visibility(queue) == 30
    world.account.later(minutes=40)
    world.fail(queue, "b")
    world.minutes(1)
    assert world.states() == ["applied", "ineffective", "escalated"]
    assert world.account.visibility(queue) == 30
    ((subject, body),) = world.account.pages("urgent")
    assert "orders.fifo" in subject
    assert "VisibilityTimeout: 10 s -> 30 s" in body


def test_with_heal_down_a_case_waits_and_is_reported_within_a_day(world: World) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    world.heal_is_up = False
    world.fail(queue, "a")
    world.account.later(minutes=40)
    world.fail(queue, "b")
    world.minutes(3)
    assert world.states() == ["applied", "ineffective"]
    world.account.later(hours=24)
    world.follow()
    assert world.states()[-1] == "escalated"
    assert len(world.account.pages("urgent")) == 1


def test_a_persons_newer_value_is_overridden_and_retained(world: World) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    world.fail(queue, "a")
    world.account.set_visibility(queue, 40)
    world.account.later(minutes=45)
    world.fail(queue, "b")
    world.minutes(1)
    assert world.account.visibility(queue) == 40
    assert world.states() == ["applied", "overridden"]


def test_a_frozen_account_takes_no_further_step(world: World) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    world.fail(queue, "a")
    freeze = {"pk": {"S": "account"}, "sk": {"S": "freeze"}, "reason": {"S": "Black Friday"}}
    world.account.clients.dynamodb.put_item(TableName="case_store", Item=freeze)
    world.account.later(minutes=40)
    world.fail(queue, "b")
    world.minutes(10)
    assert world.account.visibility(queue) == 45
    assert world.states() == ["applied", "ineffective"]


@pytest.mark.parametrize(
    ("tag", "ends"), [("off", "closed"), ("observe", "escalated"), ("propose", "escalated")]
)
def test_a_queue_that_is_no_longer_to_be_healed_is_left_alone(
    world: World, tag: str, ends: str
) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    world.fail(queue, "a")
    world.account.later(minutes=40)
    world.fail(queue, "b")
    world.account.tag(queue, mendq=tag)
    world.minutes(1)
    assert world.account.visibility(queue) == 45
    assert world.states()[-1] == ends


def test_a_proposal_expires_and_changes_nothing(world: World) -> None:
    queue = world.account.queue(tag="propose", VisibilityTimeout="30")
    world.fail(queue, "a")
    world.account.later(hours=23, minutes=59)
    world.follow()
    assert world.states() == ["proposed"]
    world.account.later(minutes=1)
    world.follow()
    assert world.states() == ["proposed", "expired"]
    assert world.account.visibility(queue) == 30


def test_an_approval_that_came_to_nothing_is_reported(world: World) -> None:
    """A person said yes and believes that it is done."""
    queue = world.account.queue(tag="propose", VisibilityTimeout="30")
    world.fail(queue, "a")
    world.heal_is_up = False
    move(world.account, case_of(world.account), "approved")
    world.account.later(hours=25)
    world.follow()
    assert world.states() == ["proposed", "approved", "expired"]
    _, (subject, body) = world.account.pages("info")
    assert subject == "Mendq expired: visibility timeout too short on orders.fifo"
    assert "Why: it was approved and could not be done in time" in body
    assert f"mendq show {case_of(world.account).case_id} --region us-east-1" in body
    assert world.account.pages("urgent") == []


def test_what_has_ended_and_could_not_be_reported_is_reported_later(world: World) -> None:
    """Nobody else comes by: it is in no state that anything waits for."""
    queue = world.account.queue(tag="propose", VisibilityTimeout="30")
    world.fail(queue, "a")
    world.heal_is_up = False
    move(world.account, case_of(world.account), "approved")
    world.account.later(hours=25)
    with Stubber(world.account.clients.sns) as sns:
        sns.add_client_error("publish", "InternalError")
        assert [type(each) for each in world.follow().errors.values()] == [NotificationNotSent]
    assert world.states() == ["proposed", "approved", "expired"]
    world.account.later(minutes=6)
    assert world.follow().errors == {}
    assert [subject for subject, _ in world.account.pages("info")][1:] == [
        "Mendq expired: visibility timeout too short on orders.fifo"
    ]
    context = CaseContext(
        world.account.clients, world.account.settings, "looking", world.account.now
    )
    assert context.open_cases.listed() == []


def test_an_approved_plan_that_has_changed_is_reported(world: World) -> None:
    queue = world.account.queue(tag="propose", VisibilityTimeout="30")
    world.fail(queue, "a")
    move(world.account, case_of(world.account), "approved")
    world.account.set_visibility(queue, 40)
    world.minutes(1)
    assert world.states() == ["proposed", "approved", "expired"]
    assert world.account.visibility(queue) == 40
    _, (_, body) = world.account.pages("info")
    assert "the plan would be VisibilityTimeout 40 -> 60 now" in body


def test_two_follow_ups_at_once_move_a_case_once(world: World) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    world.fail(queue, "a")
    world.deletes = 1
    world.account.later(minutes=20)
    followed: list[Followed] = []

    def overtake(**_: Any) -> None:
        if not followed:
            followed.append(Followed([]))
            followed[0] = world.follow()

    events: Any = world.account.clients.dynamodb.meta.events
    events.register("before-call.dynamodb.TransactWriteItems", overtake)
    assert world.follow().errors == {}
    assert world.states() == ["applied", "verified"]


def test_one_case_that_cannot_be_read_costs_only_itself(world: World) -> None:
    bad, good = (world.account.queue(f"{name}.fifo", VisibilityTimeout="30") for name in "ab")
    world.fail(bad, "a")
    world.fail(good, "b")
    world.account.clients.dynamodb.update_item(
        TableName="case_store",
        Key={"pk": {"S": bad}, "sk": {"S": "case#visibility_timeout_too_short"}},
        UpdateExpression="SET document = :bad",
        ExpressionAttributeValues={":bad": {"S": "{}"}},
    )
    world.deletes = 1
    world.account.later(minutes=20)
    assert len(world.follow().errors) == 1
    assert world.account.transitions()[-1]["queue_arn"] == good
    assert world.states()[-1] == "verified"


def test_a_case_of_a_newer_version_waits_for_it_and_is_no_error(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the alarm on a follow-up that fails would ring until somebody closes the case."""
    queue = world.account.queue(VisibilityTimeout="30")
    world.fail(queue, "a")
    older = tuple(each for each in CATALOGUE if each.name != "visibility_timeout_too_short")
    world.deletes = 1
    world.account.later(minutes=20)
    monkeypatch.setattr(recover, "CATALOGUE", older)
    followed = world.follow()
    assert followed.errors == {}
    assert [each.symptom for each in followed.unknown] == ["visibility_timeout_too_short"]
    assert followed.by_state == {"applied": 1}
    assert world.follow().unknown == [], "it is not due again within the minute"
    assert world.states() == ["applied"]
    monkeypatch.setattr(recover, "CATALOGUE", CATALOGUE)
    world.account.later(minutes=61)
    assert world.follow().errors == {}
    assert world.states() == ["applied", "verified"]


def test_a_page_left_unsent_is_sent_by_the_follow_up(world: World) -> None:
    queue = world.account.queue(tag="propose", VisibilityTimeout="30")
    world.account.settings = replace(world.account.settings, info_topic_arn="arn:aws:sns:::gone")
    world.fail(queue, "a")
    assert world.account.pages("info") == []
    world.minutes(1)
    world.account.settings = settings()
    world.minutes(8)
    assert len(world.account.pages("info")) == 1
    assert world.states() == ["proposed"]


@pytest.mark.parametrize(
    "request_about",
    [
        {},
        {"symptom": "visibility_timeout_too_short"},
        {"symptom": "x", "queue_arn": "y", "case_id": "z"},
    ],
)
def test_a_request_that_names_no_case_of_ours_is_refused(
    account: Account, request_about: dict[str, str]
) -> None:
    with pytest.raises(CaseUnreadable):
        take_up(request_about, account.run())


def test_a_case_that_waits_for_nobody_is_not_taken_up(world: World) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    world.fail(queue, "a")
    (case,) = world.account.transitions()
    asked = {
        "case_id": case["case_id"],
        "queue_arn": queue,
        "symptom": "visibility_timeout_too_short",
    }
    world.account.later(hours=1)
    for request in (asked, {**asked, "case_id": "visibility_timeout_too_short-another"}):
        outcome = take_up(request, world.account.run())
        assert outcome.refusal is not None
        assert outcome.refusal.code == "moved_on"
    assert world.account.visibility(queue) == 45
    assert world.states() == ["applied"]


def test_what_is_open_is_counted_by_state_and_age(world: World) -> None:
    world.account.settings = settings(autonomy={"visibility_timeout_too_short": Mode.PROPOSE})
    world.fail(world.account.queue("a.fifo", VisibilityTimeout="30"), "a")
    world.account.later(hours=1)
    world.fail(world.account.queue("b.fifo", VisibilityTimeout="30"), "b")
    followed = world.follow()
    assert followed.by_state == {"proposed": 2}
    assert followed.oldest_age_seconds(world.account.now) == timedelta(hours=1).total_seconds()


def test_a_value_that_a_person_chose_since_is_not_called_verified(world: World) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    world.fail(queue, "a")
    world.account.set_visibility(queue, 30)
    world.deletes = 9
    world.minutes(25)
    assert world.states() == ["applied", "overridden"]
    assert world.account.visibility(queue) == 30
    assert len(world.account.pages("info")) == 1


def test_a_queue_that_is_gone_ends_its_case(world: World) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    world.fail(queue, "a")
    world.account.clients.sqs.delete_queue(QueueUrl=world.account.url(queue))
    world.minutes(25)
    assert world.states() == ["applied", "closed"]


def test_calls_that_fail_now_and_then_reach_a_person(world: World) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    world.fail(queue, "a")
    world.deletes = 9
    for n in range(49 * 6):
        world.account.later(minutes=10)
        world.account.heal(world.account.late_deletes(queue, f"straggler-{n}"))
        world.follow()
    assert world.states()[-1] == "escalated"
    assert len(world.account.pages("urgent")) == 1


def test_cloudwatch_that_does_not_answer_proves_and_ends_nothing(world: World) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    world.fail(queue, "a")

    def down(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied"}}, "GetMetricData")

    world.account.clients.cloudwatch.meta.events.register_first(GET, down)
    world.minutes(25)
    assert world.states() == ["applied", "unverified"]
    world.fail(queue, "b")
    world.minutes(10)
    assert "ineffective" in world.states()


def test_a_next_step_is_stopped_as_one_of_many_too(world: World) -> None:
    queues = [world.account.queue(f"q{n}.fifo", VisibilityTimeout="30") for n in range(8)]
    for n, queue in enumerate(queues):
        world.fail(queue, f"{n}a")
        world.account.later(minutes=61)
        world.follow()
    world.account.later(minutes=5)
    for n, queue in enumerate(queues):
        world.fail(queue, f"{n}b")
    world.minutes(3)
    raised = sum(world.account.visibility(queue) > 45 for queue in queues)
    assert raised <= 3


def test_what_readers_asked_for_counts_for_the_next_step_too(world: World) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    asked = {
        "eventName": "ChangeMessageVisibility",
        "errorCode": "MessageNotInflight",
        "requestParameters": {"visibilityTimeout": 35},
    }
    world.fail(queue, "a", **asked)
    assert world.account.visibility(queue) == 45
    world.account.later(minutes=40)
    world.fail(queue, "b", **asked)
    world.minutes(1)
    assert world.account.visibility(queue) == 45
    assert world.states()[-1] == "escalated"


def test_a_queue_that_is_off_by_now_is_not_called_verified(world: World) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    world.fail(queue, "a")
    world.account.tag(queue, mendq="off")
    world.deletes = 9
    world.minutes(25)
    assert world.states() == ["applied", "closed"]


@pytest.mark.parametrize(
    "elsewhere", [("us-east-1", "eu-west-1"), ("123456789012", "210987654321")]
)
def test_a_case_of_another_account_or_region_is_not_taken_up(
    world: World, elsewhere: tuple[str, str]
) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    asked = {
        "case_id": "x",
        "queue_arn": queue.replace(*elsewhere),
        "symptom": "visibility_timeout_too_short",
    }
    refusal = take_up(asked, world.account.run()).refusal
    assert refusal is not None
    assert refusal.code == "elsewhere"
    assert world.account.visibility(queue) == 30
    assert world.account.case_store_items() == {}


def test_a_closed_change_calendar_takes_no_further_step(world: World) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    world.fail(queue, "a")
    world.account.later(minutes=40)
    world.fail(queue, "b")
    state = {"State": "CLOSED"}
    world.account.settings = settings(freeze_calendars=("Peak",))
    calendars: Any = world.account.clients.ssm.meta.events
    calendars.register(
        "before-call.ssm.GetCalendarState", lambda **_: (SimpleNamespace(status_code=200), state)
    )
    world.minutes(10)
    assert world.called
    assert world.account.visibility(queue) == 45
    assert world.states() == ["applied", "ineffective"]
    state["State"] = "OPEN"
    world.minutes(10)
    assert world.account.visibility(queue) == 68


def test_without_time_for_another_case_it_stops_and_goes_on_the_next_minute(world: World) -> None:
    for name in "ab":
        world.fail(world.account.queue(f"{name}.fifo", VisibilityTimeout="30"), name)
    world.deletes = 1
    world.account.later(minutes=20)
    remaining = iter([SECONDS_FOR_A_CASE, SECONDS_FOR_A_CASE - 1])
    followed = world.follow(lambda: next(remaining))
    assert (len(followed.open_cases), followed.errors) == (2, {})
    assert world.states() == ["applied", "applied", "verified"]
    world.minutes(1)
    assert world.states().count("verified") == 2


def freeze(account: Account, reason: str) -> None:
    item = {"pk": {"S": "account"}, "sk": {"S": "freeze"}, "reason": {"S": reason}}
    account.clients.dynamodb.put_item(TableName="case_store", Item=item)


@pytest.mark.parametrize("state", ["ineffective", "approved"])
def test_what_waits_an_hour_to_be_written_is_reported_once(world: World, state: str) -> None:
    """A cooldown passes by itself; a freeze that somebody has forgotten does not."""
    account = world.account
    tag = "heal" if state == "ineffective" else "propose"
    queue = account.queue(tag=tag, VisibilityTimeout="30")
    world.fail(queue, "a")
    announced = len(account.pages("info"))
    freeze(account, "Black Friday")
    account.later(minutes=40)
    if state == "ineffective":
        world.fail(queue, "b")
    else:
        move(account, case_of(account), "approved")
    world.minutes(60)
    assert world.states()[-1] == state
    assert len(account.pages("info")) == announced
    hold_up = context_of(account).case_store.look(queue, "visibility_timeout_too_short", ()).hold_up
    assert hold_up is not None
    assert (hold_up.code, hold_up.reason) == ("frozen", "changes are frozen: Black Friday")
    world.minutes(120)
    *_, (subject, body) = account.pages("info")
    assert len(account.pages("info")) == announced + 1
    assert subject == f"Mendq {state}: visibility timeout too short on orders.fifo"
    assert "held up" in body
    assert "changes are frozen: Black Friday" in body
    assert f"mendq show {case_of(account).case_id}" in body


def test_what_held_a_case_up_is_over_once_it_has_moved(world: World) -> None:
    queue = world.account.queue(VisibilityTimeout="30")
    world.fail(queue, "a")
    world.account.later(minutes=5)
    world.fail(queue, "b")
    world.minutes(2)
    hold_up = (
        context_of(world.account).case_store.look(queue, "visibility_timeout_too_short", ()).hold_up
    )
    assert hold_up is not None
    assert hold_up.code == "too_soon"
    world.minutes(30)
    assert world.states() == ["applied", "ineffective", "applied"]
    assert (
        context_of(world.account).case_store.look(queue, "visibility_timeout_too_short", ()).hold_up
        is None
    )
    assert world.account.pages("info") == []
