from __future__ import annotations

from typing import Any

import pytest

from mendq.model.settings import ProbeSettings
from mendq.probe.probe import QUEUE_NAME
from tests.infra.permissions import decision
from tests.infra.synthesized import QUEUE_ARNS, SETTINGS, template_of


def _statements(name: str = "default") -> list[dict[str, Any]]:
    return template_of(name).statements("ProbeRole")


def _queue() -> str:
    return template_of("default").arn_of("AWS::SQS::Queue", "ProbeQueue")


def test_its_queue_refuses_a_message_without_a_deduplication_id_and_has_the_known_name() -> None:
    queue = template_of("default").only("AWS::SQS::Queue", "ProbeQueue")
    assert queue["QueueName"] == QUEUE_NAME
    assert queue["FifoQueue"] is True
    assert queue["ContentBasedDeduplication"] is False
    assert queue["Tags"] == [{"Key": "mendq", "Value": "off"}], "it is not managed"


@pytest.mark.parametrize("name", SETTINGS)
def test_it_sends_to_its_own_queue_alone(name: str) -> None:
    queues = [f"{QUEUE_ARNS}{each}" for each in template_of(name).all("AWS::SQS::Queue")]
    for queue in (f"{QUEUE_ARNS}orders.fifo", *queues):
        allowed = any(each in queue for each in ("ProbeQueue", "ProbeDlq"))
        may = decision(_statements(name), "sqs:SendMessage", queue)
        assert may == ("Allow" if allowed else "ImplicitDeny"), queue


@pytest.mark.parametrize(
    "action", ["SetQueueAttributes", "ReceiveMessage", "DeleteMessage", "PurgeQueue", "DeleteQueue"]
)
def test_it_may_do_nothing_else_to_queues(action: str) -> None:
    assert decision(_statements(), f"sqs:{action}", _queue()) == "ImplicitDeny"


def test_the_case_store_is_read_and_written_one_item_at_a_time() -> None:
    table = template_of("default").arn_of("AWS::DynamoDB::Table", "CaseStore")
    for verb in ("GetItem", "PutItem", "UpdateItem"):
        assert decision(_statements(), f"dynamodb:{verb}", table) == "Allow"
    for verb in ("DeleteItem", "Query", "Scan", "DeleteTable"):
        assert decision(_statements(), f"dynamodb:{verb}", table) == "ImplicitDeny"


def test_only_people_who_want_to_be_woken_hear_of_it() -> None:
    template = template_of("default")
    for severity, may in (("Urgent", "Allow"), ("Info", "ImplicitDeny")):
        topic = template.arn_of("AWS::SNS::Topic", f"Topics{severity}").removeprefix("arn:")
        assert decision(_statements(), "sns:Publish", topic) == may


def test_it_knows_its_queue_its_case_store_and_whom_to_page() -> None:
    function = template_of("default").only("AWS::Lambda::Function", "Probe")
    variables = function["Environment"]["Variables"]
    settings = ProbeSettings.from_environment(variables)
    assert variables == settings.to_environment(), "and it gets nothing beside them"
    assert settings.probe_queue_url.startswith("ProbeQueue")
    assert settings.case_table.startswith("CaseStoreTable")
    assert settings.urgent_topic_arn.startswith("TopicsUrgentTopic")
    assert function["Handler"] == "functions.probe.handler"


def test_its_role_is_the_one_that_heal_knows_the_probe_by() -> None:
    role = template_of("default").only("AWS::IAM::Role", "ProbeRole")
    heal = template_of("default").only("AWS::Lambda::Function", "Heal")
    known = heal["Environment"]["Variables"]["MENDQ_PROBE_ROLE"]
    assert known.endswith(f":role/{role['RoleName']}")
    assert role["RoleName"] not in heal["Environment"]["Variables"]["MENDQ_OWN_ROLES"]


def test_what_it_gives_up_is_retained_for_a_person() -> None:
    config = template_of("default").only("AWS::Lambda::EventInvokeConfig", "Probe")
    assert 0 < config["MaximumRetryAttempts"] <= 2
    parked = config["DestinationConfig"]["OnFailure"]["Destination"]
    assert parked.startswith(f"{QUEUE_ARNS}ProbeDlq")
    assert decision(_statements(), "sqs:SendMessage", parked) == "Allow"
