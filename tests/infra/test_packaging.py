"""What the Lambdas' zip holds, and that it runs with nothing but boto3 beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from infra.packaging.wheels import ROOT, WheelsUnavailable
from infra.packaging.zips import (
    THIS_MACHINE,
    ForeignLibrary,
    foreign_libraries,
    refuse_foreign_libraries,
    stage,
)
from mendq.model.settings import HealSettings
from tests.infra.synthesized import ACCOUNT, HEAL_ROLE, QUEUE_ARNS, REGION, asset_of
from tests.infra.test_elf import X86_64, elf
from tests.infra.zips import digest, imported_from_elsewhere, in_isolation, modules, ours, rooms

MESSAGE_ID = "059f36b4-87a3-44ab-83d2-661975830a7d"
OWN_CALL = {
    "detail-type": "AWS API Call via CloudTrail",
    "source": "aws.sqs",
    "account": ACCOUNT,
    "region": REGION,
    "detail": {
        "eventVersion": "1.11",
        "eventID": "9a7e8feb-b491-4cf7-a9f1-bf3703467718",
        "eventTime": "2026-11-21T04:14:00Z",
        "eventSource": "sqs.amazonaws.com",
        "eventName": "GetQueueAttributes",
        "awsRegion": REGION,
        "recipientAccountId": ACCOUNT,
        "errorCode": "AccessDenied",
        "resources": [{"type": "AWS::SQS::Queue", "ARN": f"{QUEUE_ARNS}orders"}],
        "userIdentity": {
            "type": "AssumedRole",
            "sessionContext": {"sessionIssuer": {"type": "Role", "arn": HEAL_ROLE}},
        },
    },
}

HANDLE = """
from functions.heal import handler

class Context:
    aws_request_id = "11111111-2222-3333-4444-555555555555"
    function_name, memory_limit_in_mb = "heal", 512
    invoked_function_arn = "arn:aws:lambda:us-east-1:111122223333:function:heal"

    def get_remaining_time_in_millis(self):
        return 60_000

answer = handler(json.load(sys.stdin), Context())
print(json.dumps({"answer": answer, "outside": outside()}))
"""


@pytest.fixture(scope="session")
def lambda_zip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lambda-zip")
    stage(folder)
    return folder


@pytest.fixture(scope="session")
def host_zip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("host-zip")
    stage(folder, target=THIS_MACHINE)
    return folder


def _batch(body: str) -> dict[str, object]:
    """What Lambda hands over for one message of the intake queue."""
    record = {
        "messageId": MESSAGE_ID,
        "receiptHandle": "handle",
        "body": body,
        "attributes": {},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"{QUEUE_ARNS}intake",
        "awsRegion": REGION,
    }
    return {"Records": [record]}


def _handle(event: object, *folders: Path) -> Any:
    settings = HealSettings(
        ACCOUNT,
        case_table="case_store",
        case_bucket="cases",
        urgent_topic_arn="urgent",
        info_topic_arn="info",
        own_roles=(HEAL_ROLE.rpartition("/")[2],),
        probe_role="probe",
    )
    return in_isolation(HANDLE, json.dumps(event), folders, settings.to_environment())


def test_without_boto3_beside_it_it_does_not_even_import(host_zip: Path) -> None:
    with pytest.raises(AssertionError, match="No module named 'boto"):
        _handle(_batch("{}"), host_zip)


def test_alone_with_boto3_every_module_imports(host_zip: Path, runtime: Path) -> None:
    assert imported_from_elsewhere(host_zip, runtime) == []


def test_alone_with_boto3_it_handles_a_call_of_our_own(host_zip: Path, runtime: Path) -> None:
    handled = _handle(_batch(json.dumps(OWN_CALL)), host_zip, runtime)
    assert handled["outside"] == []
    assert handled["answer"] == {"batchItemFailures": []}


def test_alone_with_boto3_it_gives_an_unreadable_record_back(host_zip: Path, runtime: Path) -> None:
    handled = _handle(_batch("{no json"), host_zip, runtime)
    assert handled["answer"] == {"batchItemFailures": [{"itemIdentifier": MESSAGE_ID}]}


def test_the_shipped_zip_holds_the_same_modules(lambda_zip: Path, host_zip: Path) -> None:
    assert "functions/heal" in modules(host_zip)
    assert modules(lambda_zip) == modules(host_zip)


def test_the_shipped_zip_holds_libraries_for_arm64_alone(lambda_zip: Path) -> None:
    assert list(foreign_libraries(lambda_zip)) == []


def test_a_library_for_another_processor_is_not_shipped(tmp_path: Path) -> None:
    (tmp_path / "lib.so").write_bytes(elf(X86_64))
    with pytest.raises(ForeignLibrary, match=r"^lib\.so is not built for arm64"):
        refuse_foreign_libraries(tmp_path)


def test_the_zip_holds_our_code_and_the_sub_lock_and_nothing_else(lambda_zip: Path) -> None:
    assert {each.name for each in lambda_zip.iterdir()} == {
        "mendq",
        "functions",
        "aws_lambda_powertools",
        "jmespath",
        "typing_extensions.py",
    }
    every = {each.name for each in (ROOT / "functions").glob("*.py")}
    assert ours(lambda_zip) == every - {"deliver_report.py"}
    assert rooms(lambda_zip) == rooms(ROOT) - {"cli", "lint", "report"}
    assert not [each for each in lambda_zip.rglob("*") if each.name == "__pycache__"]


def test_staging_twice_gives_the_same_bytes(lambda_zip: Path, tmp_path: Path) -> None:
    stage(tmp_path)
    assert digest(tmp_path) == digest(lambda_zip)


def test_the_assembly_ships_what_was_staged(lambda_zip: Path) -> None:
    assert digest(asset_of("Heal")) == digest(lambda_zip)
    assert asset_of("StartNightly") == asset_of("Heal")


def test_without_wheels_one_line_says_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(WheelsUnavailable) as missing:
        stage(tmp_path, wheels=tmp_path / ".wheels")
    assert str(missing.value) == (
        "there are no wheels in .wheels/; run `.venv/bin/python -m infra.packaging.wheels`"
    )


def test_wheels_of_another_lock_say_the_remedy_in_one_line(tmp_path: Path) -> None:
    wheels = tmp_path / ".wheels"
    wheels.mkdir()
    with pytest.raises(WheelsUnavailable) as stale:
        stage(tmp_path, wheels=wheels)
    assert "run `.venv/bin/python -m infra.packaging.wheels`" in str(stale.value)
    assert "\n" not in str(stale.value)
