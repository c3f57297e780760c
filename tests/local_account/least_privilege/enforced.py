"""Lambdas called in an account that enforces their roles, an action of a role taken away."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from local_account.process import LocalAccount

Policies = dict[str, dict[str, Any]]
_DENIED = re.compile(r"not authorized to perform: ([\w-]+:\w+)")


@dataclass(frozen=True)
class Answer:
    """What a Lambda answered; `error` is the word for why it did not do it, or empty.

    `denied` is the action that IAM refused it, as far as it says so.
    """

    document: Any
    error: str
    denied: str


@dataclass(frozen=True)
class Enforced:
    """An account in which nothing runs by itself; `said` is what was answered of late."""

    account: LocalAccount
    said: list[Answer] = field(default_factory=list, compare=False)

    def silence(self) -> None:
        """No schedule fires and no rule matches: what runs was called, by the role in question."""
        scheduler, events = self.account.client("scheduler"), self.account.client("events")
        for schedule in scheduler.list_schedules()["Schedules"]:
            scheduler.delete_schedule(Name=schedule["Name"], GroupName=schedule["GroupName"])
        for rule in events.list_rules()["Rules"]:
            events.disable_rule(Name=rule["Name"])

    @cached_property
    def functions(self) -> Mapping[str, str]:
        """Every Lambda's name by its role."""
        listed = self.account.client("lambda").list_functions()["Functions"]
        return {each["Role"].rpartition("/")[2]: each["FunctionName"] for each in listed}

    @cached_property
    def outputs(self) -> Mapping[str, str]:
        return self.account.outputs

    def call(self, handler: str, event: Mapping[str, Any]) -> Answer:
        """As whoever calls it would."""
        answer = self.account.client("lambda").invoke(
            FunctionName=self.functions[role_of(handler)], Payload=json.dumps(event).encode()
        )
        text = answer["Payload"].read().decode()
        document, denied = json.loads(text), _DENIED.search(text)
        word = document.get("errorType" if "FunctionError" in answer else "error", "")
        self.said.append(Answer(document, word, denied[1] if denied else ""))
        return self.said[-1]

    def policies(self, handler: str) -> Policies:
        """The role's own; it has no others."""
        iam, role = self.account.client("iam"), role_of(handler)
        found = {}
        for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
            document = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
            found[name] = json.loads(document) if isinstance(document, str) else document
        return found

    def allowed(self, handler: str) -> set[str]:
        """Every action that some Allow of the role names."""
        return {
            action
            for policy in self.policies(handler).values()
            for statement in policy["Statement"]
            if statement["Effect"] == "Allow"
            for action in _actions(statement)
        }

    @contextmanager
    def without(self, handler: str, action: str) -> Iterator[None]:
        """The role with one action taken out of every Allow; put back afterwards."""
        before = self.policies(handler)
        assert action in self.allowed(handler)
        self.said.clear()
        self._put(handler, {name: _fewer(policy, action) for name, policy in before.items()})
        try:
            yield
        finally:
            self._put(handler, before)

    def _put(self, handler: str, policies: Policies) -> None:
        iam, role = self.account.client("iam"), role_of(handler)
        for name, policy in policies.items():
            iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=json.dumps(policy))


def role_of(handler: str) -> str:
    """The literal name of a Lambda's role."""
    return f"mendq-{handler.replace('_', '-')}-us-east-1"


def _actions(statement: Mapping[str, Any]) -> list[str]:
    actions = statement["Action"]
    return [actions] if isinstance(actions, str) else list(actions)


def _fewer(policy: Mapping[str, Any], action: str) -> dict[str, Any]:
    statements = [
        {**each, "Action": [one for one in _actions(each) if one != action]}
        if each["Effect"] == "Allow"
        else each
        for each in policy["Statement"]
    ]
    return {**policy, "Statement": [each for each in statements if each["Action"]]}
