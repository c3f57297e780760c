"""The AWS account and region of a command, and access to the Mendq stack that is deployed there.

AWS_PROFILE, AWS_REGION and AWS_ENDPOINT_URL mean the same as for the AWS CLI. boto3 reads them
itself, except AWS_REGION.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError, ProfileNotFound
from msgspec import Struct

from mendq.aws.clients import Clients
from mendq.aws.errors import error_code_of
from mendq.aws.operator_session import make_operator_session
from mendq.aws.service_clock import measure_clock_difference
from mendq.cases.seal_keys import SEAL_TABLE_OUTPUT, SealKeys
from mendq.cases.transactions import CaseStoreTable, Table
from mendq.cli.exit_codes import CommandError, Exit
from mendq.model.partitions import is_aws_host
from mendq.model.settings import OwnerSettings, ScanOnlySettings, SettingsUnreadable

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.type_defs import DescribeStacksOutputTypeDef, StackTypeDef
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sts import STSClient

    from mendq.aws.operator_session import Session


_ONE_ATTEMPT_CONFIGURATION: Mapping[str, Any] = {"retries": {"total_max_attempts": 1}}
_TWO_ATTEMPTS_RETRY_CONFIGURATION = {"mode": "standard", "total_max_attempts": 2}
_SESSION_CONFIGURATION: Mapping[str, Any] = {
    "connect_timeout": 2,
    "retries": _TWO_ATTEMPTS_RETRY_CONFIGURATION,
}
# Timeouts of a command's first call, which asks CloudFormation or STS. AWS gets two attempts of
# four seconds. An endpoint that the operator configured gets one attempt of less than three
# seconds, so that a wrong endpoint fails fast.
_FIRST_CALL_CONFIGURATION = {"read_timeout": 4}
_CUSTOM_ENDPOINT_CONFIGURATION = {
    **_ONE_ATTEMPT_CONFIGURATION,
    "connect_timeout": 1,
    "read_timeout": 1.5,
}
# The approve Lambda waits for the Lambda that makes the change, which may run for a minute. A
# second attempt would wait for another minute, so there is none.
_INVOKE_CONFIGURATION = {**_ONE_ATTEMPT_CONFIGURATION, "read_timeout": 150}


# The end of a sentence about a stack that was deployed with the setting scanOnly.
SCAN_ONLY_TEXT = "is scan-only (scanOnly: true): it only scans and reports"


def _convert_scan_only_settings(settings: ScanOnlySettings) -> OwnerSettings:
    """Convert the settings of a scan-only stack to the settings that heal has.

    A scan-only stack has one topic, which stands for both topics here. It has no case bucket, so
    the bucket's name is empty.
    """
    return OwnerSettings(
        account=settings.account,
        case_table=settings.case_table,
        case_bucket="",
        limits=settings.limits,
        timing=settings.timing,
        urgent_topic_arn=settings.urgent_topic_arn,
        info_topic_arn=settings.urgent_topic_arn,
        chat=settings.chat,
        docs_url=settings.docs_url,
        consent=settings.consent,
        mutes=settings.mutes,
    )


def _make_endpoint_error(error: ValueError) -> CommandError:
    endpoint_hint = "see AWS_ENDPOINT_URL, or endpoint_url of the profile, and the region"
    return CommandError(f"{error}: {endpoint_hint}", Exit.USAGE)


def read_region_variable() -> str:
    """Return the region of the environment as the AWS SDKs choose it; empty if it names none."""
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION", "")


class Account(Struct, frozen=True, dict=True):
    """The account, region and stack of a command.

    Nothing asks AWS until a property or method needs its answer.
    """

    session: Session
    # Name of the deployed CloudFormation stack.
    stack: str

    @classmethod
    def from_options(cls, profile: str | None, region: str | None, stack: str) -> Account:
        """Return the account for the options --profile, --region and --stack.

        Raises CommandError if an option is empty, if there is no such profile, or if no region is
        given anywhere.
        """
        if not stack.strip():
            raise CommandError("--stack is empty: give the name of the deployed stack", Exit.USAGE)
        # An empty value, such as that of an unset shell variable, must not select the default.
        if region is not None and not region.strip():
            raise CommandError(
                "--region is empty: name a region, or leave --region out", Exit.USAGE
            )
        if profile is not None and not profile.strip():
            raise CommandError("--profile is empty: name a profile, or leave it out", Exit.USAGE)
        region_name = region or os.environ.get("AWS_REGION") or None
        try:
            session = make_operator_session(
                profile, region_name, _SESSION_CONFIGURATION, _make_endpoint_error
            )
        except ProfileNotFound as error:
            raise CommandError(f"{error}: see `aws configure list-profiles`", Exit.USAGE) from error
        if not session.region_name:
            raise CommandError("no region: give --region or set AWS_REGION", Exit.USAGE)
        return cls(session, stack)

    @property
    def region(self) -> str:
        return self.session.region_name

    @cached_property
    def clients(self) -> Clients:
        return Clients(self.session)

    def _make_client(self, service: str, configuration: Mapping[str, Any]) -> Any:
        """Return a client of a service with its own timeouts and retries: `configuration`."""
        from botocore.config import Config  # noqa: PLC0415

        return self.session.client(service, config=Config(**configuration))

    def _make_client_for_first_call(self, service: str) -> Any:
        """Return a client for a command's first call, which fails fast if the endpoint is wrong."""
        client = self._make_client(service, _FIRST_CALL_CONFIGURATION)
        endpoint = urlsplit(client.meta.endpoint_url)
        is_aws_endpoint = endpoint.scheme == "https" and is_aws_host(endpoint.netloc)
        return (
            client
            if is_aws_endpoint
            else self._make_client(service, _CUSTOM_ENDPOINT_CONFIGURATION)
        )

    @cached_property
    def _stack_answer(self) -> tuple[DescribeStacksOutputTypeDef, datetime]:
        """CloudFormation's answer about the stack, and this machine's time when it came.

        Raises CommandError if there is no stack.
        """
        client: CloudFormationClient = self._make_client_for_first_call("cloudformation")
        try:
            answer = client.describe_stacks(StackName=self.stack)
        except ClientError as error:
            if error_code_of(error) != "ValidationError":
                raise
            message = f"no stack {self.stack} in {self.region}: give --stack or --region"
            raise CommandError(message, Exit.NOT_FOUND) from error
        return answer, datetime.now(UTC)

    @property
    def _stack_description(self) -> StackTypeDef:
        """CloudFormation's description of the stack. Raises CommandError if there is no stack."""
        answer, _ = self._stack_answer
        (description,) = answer["Stacks"]
        return description

    @property
    def clock_difference(self) -> timedelta | None:
        """How far this machine's clock is ahead of AWS's; negative if it is behind.

        It is measured by the Date header of CloudFormation's answer about the stack. None if the
        answer has no such header. Raises CommandError if there is no stack.
        """
        answer, answered_at = self._stack_answer
        return measure_clock_difference(answer, answered_at)

    @cached_property
    def outputs(self) -> Mapping[str, str]:
        """Outputs of the stack by key. Raises CommandError if there is no such stack."""
        outputs = self._stack_description.get("Outputs", [])
        return {output["OutputKey"]: output["OutputValue"] for output in outputs}

    @property
    def created_at(self) -> datetime:
        """Time of the stack's first deployment. Raises CommandError if there is no such stack."""
        return self._stack_description["CreationTime"]

    def output(self, output_name: str) -> str:
        """Return the value of one output of the stack.

        Raises CommandError if there is no stack, or if it is scan-only or too old and does not have
        this output.
        """
        if output_name not in self.outputs:
            if self.is_scan_only:
                raise self._make_scan_only_error(
                    f"and has no {output_name}; deploy it without scanOnly to get one"
                )
            raise CommandError(f"stack {self.stack} has no output {output_name}: deploy it again")
        return self.outputs[output_name]

    @property
    def is_scan_only(self) -> bool:
        """True if the stack was deployed with the setting scanOnly: it has a scan and no heal."""
        return "ScanFunction" in self.outputs and "HealFunction" not in self.outputs

    def require_whole_stack(self, verb: str) -> None:
        """Raise CommandError if the stack is scan-only. `verb` completes the error message.

        A command calls this before it does anything.
        """
        if self.is_scan_only:
            raise self._make_scan_only_error(f"so there is nothing to {verb}; nothing was done")

    def _make_scan_only_error(self, consequence: str) -> CommandError:
        return CommandError(
            f"stack {self.stack} {SCAN_ONLY_TEXT}, {consequence}", error_code="scan_only"
        )

    @property
    def has_no_nightly_job(self) -> bool:
        """True if the stack was deployed without the nightly job."""
        return "NightlyApplication" not in self.outputs

    def open_store(self, store_class: type[CaseStoreTable]) -> CaseStoreTable:
        """Return an object of `store_class`, which reads and writes a part of the case store.

        Raises CommandError if there is no stack, or if it is too old.
        """
        return store_class(self.clients.dynamodb, self.output("CaseTable"))

    def open_store_if_deployed(self, store_class: type[CaseStoreTable]) -> CaseStoreTable | None:
        """Return an object as `open_store` does. Return None if there is no such stack."""
        try:
            return self.open_store(store_class)
        except CommandError as error:
            if error.code is not Exit.NOT_FOUND:
                raise
        return None

    def open_seal_keys_if_deployed(self) -> SealKeys | None:
        """Return the seal keys. Return None if there is no such stack.

        A stack that is scan-only, or of a version before the table of seal keys, has no such table.
        """
        case_store = self.open_store_if_deployed(Table)
        if case_store is None:
            return None
        return SealKeys(
            self.clients.dynamodb, case_store.table, self.outputs.get(SEAL_TABLE_OUTPUT, "")
        )

    @cached_property
    def settings(self) -> OwnerSettings:
        """Settings of the deployed heal Lambda, or of the only Lambda of a scan-only stack.

        Raises CommandError if there is no stack, or if this version cannot read its settings.
        """
        function_name = self.output("ScanFunction" if self.is_scan_only else "HealFunction")
        answer = self.clients.functions.get_function_configuration(FunctionName=function_name)
        environment_variables = answer.get("Environment", {}).get("Variables", {})
        try:
            if self.is_scan_only:
                return _convert_scan_only_settings(
                    ScanOnlySettings.from_environment(environment_variables)
                )
            return OwnerSettings.from_environment(environment_variables)
        except SettingsUnreadable as error:
            raise CommandError(f"the settings of {function_name}: {error}") from error

    @cached_property
    def identity(self) -> str:
        """ARN of the user or role whose credentials the command uses."""
        client: STSClient = self._make_client_for_first_call("sts")
        return client.get_caller_identity()["Arn"]

    @cached_property
    def account_id(self) -> str:
        return self.identity.split(":")[4]

    def invoke(self, output_name: str, event: Mapping[str, Any]) -> dict[str, Any]:
        """Invoke the Lambda that the stack output `output_name` names, and return its answer.

        Raises CommandError as `output` does, or if the Lambda fails or answers with anything but a
        JSON object.
        """
        client: LambdaClient = self._make_client("lambda", _INVOKE_CONFIGURATION)
        function_name = self.output(output_name)
        response = client.invoke(FunctionName=function_name, Payload=json.dumps(event).encode())
        answer = json.loads(response["Payload"].read() or b"null")
        if "FunctionError" in response or not isinstance(answer, dict):
            message = answer.get("errorMessage", answer) if isinstance(answer, dict) else answer
            raise CommandError(
                f"{function_name} failed: {message}. Its log group says more; nothing else was done"
            )
        return answer
