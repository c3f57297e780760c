"""The account deploys whatever an assembly holds, and runs its Lambda as AWS would."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local_account.cannot_start import CannotStart
from local_account.deployment import read_assembly
from local_account.process import LocalAccount
from tests.local_account.assemblies import POLLING, write_assembly
from tests.local_account.queues import Queue, eventually
from tests.local_account.trail import TrailFiles


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAccount]:
    folder = write_assembly(tmp_path_factory.mktemp("assembly") / "cdk.out")
    with LocalAccount(options=("--assembly", str(folder))) as running:
        yield running


def _queue(account: LocalAccount) -> Queue:
    return Queue(account.client("sqs"), account.outputs["Queue"], is_fifo=False)


def _handled(account: LocalAccount, *who: str) -> float:
    now = time.time()
    answer = account.client("cloudwatch").get_metric_statistics(
        Namespace="Test",
        MetricName="Handled",
        Dimensions=[{"Name": "who", "Value": each} for each in who],
        StartTime=now - 3600,
        EndTime=now + 60,
        Period=3600,
        Statistics=["Sum"],
    )
    return float(sum(each["Sum"] for each in answer["Datapoints"]))


def test_a_folder_without_an_assembly_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="holds no cloud assembly"):
        read_assembly(tmp_path)


@pytest.mark.account
def test_what_is_only_accepted_is_listed(tiny: LocalAccount) -> None:
    assert "AWS::CloudWatch::AnomalyDetector: accepted, not emulated" in tiny.not_emulated
    assert "AWS::CloudWatch::Alarm with metric math: accepted, not emulated" in tiny.not_emulated
    for deployed in ("AWS::SQS::Queue", "AWS::EMRServerless::Application"):
        assert not any(deployed in line for line in tiny.not_emulated)
    said = [line for line in tiny.log_lines if line.startswith("not emulated: ")]
    assert said == [f"not emulated: {line}" for line in tiny.not_emulated]
    assert tiny.outputs["Detector"]


@pytest.mark.account
def test_the_trail_is_deployed_and_honoured(tiny: LocalAccount) -> None:
    cloudtrail = tiny.client("cloudtrail")
    assert tiny.outputs["TrailArn"].endswith(":trail/tiny")
    assert cloudtrail.get_trail_status(Name="tiny")["IsLogging"]
    queue, files = _queue(tiny), TrailFiles(tiny)
    queue.attributes()
    queue.send()
    eventually(lambda: files.records(queue, "SendMessage"))
    assert files.records(queue, "GetQueueAttributes") == []


@pytest.mark.account
def test_a_lambda_sees_its_own_variables_and_its_zip(tiny: LocalAccount) -> None:
    answer = tiny.client("lambda").invoke(FunctionName=tiny.outputs["Function"], Payload=b"{}")
    seen: dict[str, Any] = json.load(answer["Payload"])
    assert seen["variables"]["OWN"] == "yes"
    assert not {"AUTH", "GATEWAY_PORT", "HOME", "VIRTUAL_ENV"} & seen["variables"].keys()
    assert not seen["aws_lambda_powertools"]


@pytest.mark.account
def test_a_batch_waits_for_its_window_and_its_metrics_arrive(tiny: LocalAccount) -> None:
    queue = _queue(tiny)
    _wait_until_empty(queue)
    before, sent = _handled(tiny, "test"), time.monotonic()
    for _ in range(3):
        queue.send()
    eventually(lambda: _handled(tiny, "test") >= before + 3)
    assert time.monotonic() - sent > 1.5
    assert (_handled(tiny), _handled(tiny, "nobody")) == (_handled(tiny, "test"), 0)


@pytest.mark.account
def test_a_mapping_polls_nothing_that_its_role_may_not(tiny: LocalAccount) -> None:
    iam, queue = tiny.client("iam"), _queue(tiny)
    _wait_until_empty(queue)
    named = {"RoleName": "tiny", "PolicyName": "polling"}
    before = iam.get_role_policy(**named)["PolicyDocument"]
    fewer = json.loads(json.dumps(before))
    fewer["Statement"][0]["Action"] = POLLING[1:]
    iam.put_role_policy(**named, PolicyDocument=json.dumps(fewer))
    try:
        queue.send()
        eventually(lambda: any("perform: sqs:ReceiveMessage" in line for line in tiny.log_lines))
        assert queue.count() == 1
    finally:
        iam.put_role_policy(**named, PolicyDocument=json.dumps(before))
    eventually(lambda: queue.count() == 0)


def _wait_until_empty(queue: Queue) -> None:
    """No window that an earlier message opened is open any more."""
    counts = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
    eventually(lambda: all(queue.count(name) == 0 for name in counts))
