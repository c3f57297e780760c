from __future__ import annotations

from typing import Any

import pytest

from mendq.model.settings import WORKER, StartNightlySettings
from tests.infra.permissions import decision
from tests.infra.synthesized import ACCOUNT, OWN_ROLES, QUEUE_ARNS, REGION, template_of

NIGHTLY_ROLE = OWN_ROLES[3]
SERVICE = "emr-serverless.amazonaws.com"


def _statements() -> list[dict[str, Any]]:
    return template_of("default").statements("StartNightlyRole")


def _settings(name: str = "default") -> StartNightlySettings:
    function = template_of(name).only("AWS::Lambda::Function", "StartNightly")
    variables = function["Environment"]["Variables"]
    settings = StartNightlySettings.from_environment(variables)
    assert variables == settings.to_environment(), "and it gets nothing beside them"
    return settings


def _application() -> str:
    return template_of("default").arn_of("AWS::EMRServerless::Application", "Nightly")


def _nightly_role() -> str:
    return template_of("default").arn_of("AWS::IAM::Role", "NightlyRole")


def test_no_other_role_may_be_passed() -> None:
    for role in (*OWN_ROLES, f"arn:aws:iam::{ACCOUNT}:role/admin"):
        keys = {"iam:PassedToService": SERVICE}
        assert decision(_statements(), "iam:PassRole", role, keys=keys) == "ImplicitDeny"


@pytest.mark.parametrize("service", ["lambda.amazonaws.com", "ec2.amazonaws.com", ""])
def test_the_jobs_role_may_be_passed_to_no_other_service(service: str) -> None:
    keys = {"iam:PassedToService": service}
    assert decision(_statements(), "iam:PassRole", _nightly_role(), keys=keys) == "ImplicitDeny"


def test_the_jobs_role_may_be_passed_to_emr_serverless() -> None:
    keys = {"iam:PassedToService": SERVICE}
    assert decision(_statements(), "iam:PassRole", _nightly_role(), keys=keys) == "Allow"
    assert _settings().job_role_arn == _nightly_role()


def test_it_starts_jobs_on_our_application_alone() -> None:
    for action in ("ListJobRuns", "StartJobRun"):
        assert decision(_statements(), f"emr-serverless:{action}", _application()) == "Allow"
        assert decision(_statements(), f"emr-serverless:{action}", "arn:other") == "ImplicitDeny"


def test_it_may_do_nothing_beside() -> None:
    own = template_of("default").arn_of("AWS::Logs::LogGroup", "StartNightly")
    dlq = template_of("default").arn_of("AWS::SQS::Queue", "StartNightlyDlq")
    for statement in _statements():
        actions = statement["Action"]
        for action in [actions] if isinstance(actions, str) else actions:
            service = action.split(":")[0]
            expected = {
                "emr-serverless": _application(),
                "iam": _nightly_role(),
                "logs": own,
                "sqs": dlq,
            }[service]
            assert statement["Resource"] == expected, action


def test_what_it_knows_is_where_things_are() -> None:
    settings = _settings()
    assert settings.account == ACCOUNT
    assert settings.application_id.startswith("NightlyApplication")
    assert settings.entry_point.startswith(f"s3://cdk-hnb659fds-assets-{ACCOUNT}-{REGION}/")
    assert settings.entry_point.endswith(".py")
    assert settings.package.endswith(".zip")
    # By its ending Spark knows how to unpack it; the CDK keeps no more of one than this.
    assert settings.compiled_packages.endswith(".tgz")
    assert settings.trail_root.startswith("s3://TrailBucket")
    assert settings.case_root.startswith("s3://CasesBucket")
    assert settings.case_root.endswith("/cases")
    assert settings.out_root.startswith("s3://ReportsBucket")
    assert settings.log_root == f"{settings.out_root}/logs/"


@pytest.mark.parametrize("name", ["default", "named"])
def test_driver_and_executors_fill_the_application_and_no_more(name: str) -> None:
    capacity = template_of(name).only("AWS::EMRServerless::Application")["MaximumCapacity"]
    most = {unit: int(said.split()[0]) for unit, said in capacity.items()}
    workers = 1 + _settings(name).maximum_executors
    assert workers > 2
    assert workers * WORKER.vcpu <= most["Cpu"]
    assert workers * WORKER.memory_gb <= most["Memory"]
    assert workers * WORKER.disk_gb == most["Disk"]


def test_an_existing_trail_is_read_where_it_lies() -> None:
    assert _settings("existing trail").trail_root == "s3://our-cloudtrail-logs"


def test_what_it_gives_up_is_retained_for_a_person() -> None:
    config = template_of("default").only("AWS::Lambda::EventInvokeConfig", "StartNightly")
    assert 0 < config["MaximumRetryAttempts"] <= 2
    assert config["MaximumEventAgeInSeconds"] == 3_600
    destination = config["DestinationConfig"]["OnFailure"]["Destination"]
    assert destination.startswith(f"{QUEUE_ARNS}StartNightlyDlq")
    assert decision(_statements(), "sqs:SendMessage", destination) == "Allow"


def test_lambda_alone_may_be_it_and_its_name_is_literal() -> None:
    role = template_of("default").only("AWS::IAM::Role", "StartNightlyRole")
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert role["RoleName"] == "mendq-start-nightly-us-east-1"
    assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}


def test_it_runs_what_the_zip_was_built_for() -> None:
    function = template_of("default").only("AWS::Lambda::Function", "StartNightly")
    assert function["Handler"] == "functions.start_nightly.handler"
    assert (function["Runtime"], function["Architectures"]) == ("python3.13", ["arm64"])
    assert "ReservedConcurrentExecutions" not in function
