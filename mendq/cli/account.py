"""The account that a command is about: who asks, where, and what the stack has put there.

AWS_PROFILE, AWS_REGION and AWS_ENDPOINT_URL mean what they mean to the AWS CLI; boto3 reads all of
them itself except AWS_REGION.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError, ProfileNotFound
from msgspec import Struct

from mendq.aws.clients import Clients
from mendq.aws.errors import code_of
from mendq.aws.operator_session import operator_session
from mendq.cases.transactions import Stored
from mendq.cli.exit_codes import CommandError, Exit
from mendq.model.settings import OwnerSettings, SettingsUnreadable

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.type_defs import StackTypeDef
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sts import STSClient

    from mendq.aws.operator_session import Session


_ONCE: Mapping[str, Any] = {"retries": {"total_max_attempts": 1}}
_TWICE = {"mode": "standard", "total_max_attempts": 2}
_IMPATIENT: Mapping[str, Any] = {"connect_timeout": 2, "retries": _TWICE}
# Every command asks one of two questions first, and by these a wrong endpoint is told of: AWS may
# be slow once, an endpoint that somebody has named has three seconds in all.
_FIRST = {"read_timeout": 4}
_FIRST_ELSEWHERE = {**_ONCE, "connect_timeout": 1, "read_timeout": 1.5}
_OF_AWS = re.compile(r"https://[^/]+\.(?:amazonaws\.com(?:\.cn)?|api\.aws)/?")
# An approval waits for the owner of the write, which has a minute; asked twice it would be two.
_PATIENT = {**_ONCE, "read_timeout": 150}


def _endpoint_error(error: ValueError) -> CommandError:
    where = "see AWS_ENDPOINT_URL, or endpoint_url of the profile, and the region"
    return CommandError(f"{error}: {where}", Exit.USAGE)


class Account(Struct, frozen=True, dict=True):
    """Everything is asked for when it is first needed, so that offline commands ask nothing."""

    session: Session
    stack: str

    @classmethod
    def of(cls, profile: str | None, region: str | None, stack: str) -> Account:
        """Raise CommandError where profile, region or stack are none."""
        if not stack.strip():
            raise CommandError("--stack is empty: give the name of the deployed stack", Exit.USAGE)
        # An unset shell variable must not mean the default account or region.
        if region is not None and not region.strip():
            raise CommandError(
                "--region is empty: name a region, or leave --region out", Exit.USAGE
            )
        if profile is not None and not profile.strip():
            raise CommandError("--profile is empty: name a profile, or leave it out", Exit.USAGE)
        named = region or os.environ.get("AWS_REGION") or None
        try:
            session = operator_session(profile, named, _IMPATIENT, _endpoint_error)
        except ProfileNotFound as missing:
            raise CommandError(
                f"{missing}: see `aws configure list-profiles`", Exit.USAGE
            ) from missing
        if not session.region_name:
            raise CommandError("no region: give --region or set AWS_REGION", Exit.USAGE)
        return cls(session, stack)

    @property
    def region(self) -> str:
        return self.session.region_name

    @cached_property
    def clients(self) -> Clients:
        return Clients(self.session)

    def _client(self, service: str, patience: Mapping[str, Any]) -> Any:
        from botocore.config import Config  # noqa: PLC0415

        return self.session.client(service, config=Config(**patience))

    def _asked_first(self, service: str) -> Any:
        client = self._client(service, _FIRST)
        is_aws = _OF_AWS.fullmatch(client.meta.endpoint_url)
        return client if is_aws else self._client(service, _FIRST_ELSEWHERE)

    @cached_property
    def _described(self) -> StackTypeDef:
        """CommandError where there is no such stack."""
        client: CloudFormationClient = self._asked_first("cloudformation")
        try:
            (found,) = client.describe_stacks(StackName=self.stack)["Stacks"]
        except ClientError as error:
            if code_of(error) != "ValidationError":
                raise
            where = f"no stack {self.stack} in {self.region}: give --stack or --region"
            raise CommandError(where, Exit.NOT_FOUND) from error
        return found

    @cached_property
    def outputs(self) -> Mapping[str, str]:
        """What the stack calls its parts; CommandError where there is no such stack."""
        return {e["OutputKey"]: e["OutputValue"] for e in self._described.get("Outputs", [])}

    @property
    def created_at(self) -> datetime:
        """When the stack was first deployed; CommandError where there is no such stack."""
        return self._described["CreationTime"]

    def output(self, name: str) -> str:
        """Raise CommandError where the deployed stack is older than this command."""
        if name not in self.outputs:
            raise CommandError(f"stack {self.stack} has no output {name}: deploy it again")
        return self.outputs[name]

    @property
    def has_no_nightly_job(self) -> bool:
        """Whether the stack was deployed without the nightly job."""
        return "NightlyApplication" not in self.outputs

    def open_store(self, kind: type[Stored]) -> Stored:
        """The case store, as what of it is asked for reads and writes it."""
        return kind(self.clients.dynamodb, self.output("CaseTable"))

    def open_store_if_deployed(self, kind: type[Stored]) -> Stored | None:
        """As `stored`; None where there is no stack: then nothing of Mendq's runs."""
        try:
            return self.open_store(kind)
        except CommandError as without:
            if without.code is not Exit.NOT_FOUND:
                raise
        return None

    @cached_property
    def settings(self) -> OwnerSettings:
        """As the deployed heal Lambda has them; CommandError where they cannot be read."""
        name = self.output("HealFunction")
        answer = self.clients.functions.get_function_configuration(FunctionName=name)
        variables = answer.get("Environment", {}).get("Variables", {})
        try:
            return OwnerSettings.from_environment(variables)
        except SettingsUnreadable as unreadable:
            raise CommandError(f"the settings of {name}: {unreadable}") from unreadable

    @cached_property
    def identity(self) -> str:
        """The ARN of whoever asks."""
        client: STSClient = self._asked_first("sts")
        return client.get_caller_identity()["Arn"]

    @cached_property
    def account_id(self) -> str:
        return self.identity.split(":")[4]

    def invoke(self, output: str, event: Mapping[str, Any]) -> dict[str, Any]:
        """What the Lambda behind a stack output answers; CommandError where it fails."""
        client: LambdaClient = self._client("lambda", _PATIENT)
        name = self.output(output)
        answer = client.invoke(FunctionName=name, Payload=json.dumps(event).encode())
        said = json.loads(answer["Payload"].read() or b"null")
        if "FunctionError" in answer or not isinstance(said, dict):
            words = said.get("errorMessage", said) if isinstance(said, dict) else said
            raise CommandError(
                f"{name} failed: {words}. Its log group says more; nothing else was done"
            )
        return said
