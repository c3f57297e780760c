"""Who may publish, write and read what the stack holds, and what its trail sees of a drill."""

from __future__ import annotations

import pytest

from mendq.cli.deploy.drill import drill_queue_name
from mendq.cli.deploy.drill_queue import LATE_CALL
from mendq.cli.doctor.visibility import Trail, logged
from tests.infra.synthesized import ACCOUNT, QUEUE_ARNS, REGION, template_of, template_with


def test_topics_of_others_are_told_and_none_is_made() -> None:
    """Their policies and keys are theirs: a role may publish there, by SNS with the key alone."""
    topics = {name: f"arn:aws:sns:{REGION}:{ACCOUNT}:team-{name}" for name in ("urgent", "info")}
    template = template_with({"notifications": {"topics": topics}})
    for kind in ("SNS::Topic", "SNS::TopicPolicy", "KMS::Key", "SNS::Subscription"):
        assert template.all(f"AWS::{kind}") == {}
    told = {
        arn
        for kind in ("Alarm", "CompositeAlarm")
        for each in template.all(f"AWS::CloudWatch::{kind}").values()
        for arn in each["Properties"].get("AlarmActions", ())
    }
    assert told == {*topics.values()}


@pytest.mark.parametrize("name", ["default", "named"])
def test_the_drill_that_the_deploying_page_asks_for_is_seen(name: str) -> None:
    """As the drill itself asks it; `named` logs other queues, and deletes alone of them."""
    given = template_of(name).only("AWS::CloudTrail::Trail")["AdvancedEventSelectors"]
    trail = Trail("mendq", tuple(given))
    drilled = drill_queue_name()
    assert logged([trail], f"{QUEUE_ARNS}{drilled}", [LATE_CALL]) == {LATE_CALL}
    assert not logged([trail], f"{QUEUE_ARNS}x-{drilled}", [LATE_CALL])
