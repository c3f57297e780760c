"""AWS::EMRServerless::Application: kept and described; its capacity and its stops are not.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-emrserverless-application.html
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ministack.core.responses import get_account_id, get_region

TYPE = "AWS::EMRServerless::Application"
Properties = Mapping[str, Any]


@dataclass(frozen=True)
class Application:
    """What of an application shows in its job runs."""

    id: str
    arn: str
    release_label: str
    type: str


class Applications:
    """Every application of the account."""

    def __init__(self) -> None:
        self._by_id: dict[str, Application] = {}

    def get(self, application_id: str) -> Application | None:
        return self._by_id.get(application_id)

    @property
    def resource_handler(self) -> dict[str, Any]:
        """What CloudFormation calls: Ref is the id, as on AWS."""
        return {"create": self._create, "update": self._update, "delete": self._delete}

    def _create(
        self, _logical_id: str, properties: Properties, _stack_name: str
    ) -> tuple[str, dict[str, str]]:
        missing = [each for each in ("ReleaseLabel", "Type") if not properties.get(each)]
        if missing:
            raise ValueError(f"{TYPE}: #: required key [{missing[0]}] not found")
        return self._keep(f"00{secrets.token_hex(7)}", properties)

    def _update(
        self, application_id: str, _old: Properties, properties: Properties, *_: object
    ) -> tuple[str, dict[str, str]]:
        return self._keep(application_id, properties)

    def _delete(self, application_id: str, _properties: Properties) -> None:
        self._by_id.pop(application_id, None)

    def _keep(self, application_id: str, properties: Properties) -> tuple[str, dict[str, str]]:
        where = f"{get_region()}:{get_account_id()}"
        arn = f"arn:aws:emr-serverless:{where}:/applications/{application_id}"
        release, kind = str(properties["ReleaseLabel"]), str(properties["Type"])
        self._by_id[application_id] = Application(application_id, arn, release, kind.title())
        return application_id, {"Arn": arn, "ApplicationId": application_id}
