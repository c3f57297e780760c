"""What the role of a Lambda or of the job may do, by resource of the template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from infra.diagram.names import FUNCTION, JOB
from infra.diagram.references import references

# By how the names of actions begin.
_READS = ("Get", "List", "Query", "BatchGet", "ConditionCheck", "Scan", "Decrypt", "Lookup")
_CALLS = ("InvokeFunction", "StartJobRun")
_NIGHT = "NightRole"


@dataclass(frozen=True)
class Grant:
    """One statement that allows: its actions, and the resources of the template it is about."""

    actions: frozenset[str]
    on: frozenset[str]

    @property
    def verbs(self) -> frozenset[str]:
        """Of a statement about queues that others own, what it lets do to them alone."""
        wanted = "sqs:" if self.is_of_your_queues else ""
        named = (each for each in self.actions if each.startswith(wanted))
        return frozenset(_verb(each.partition(":")[2]) for each in named)

    @property
    def is_of_your_queues(self) -> bool:
        """Whether it is about queues that the template does not hold."""
        return not self.on and any(each.startswith("sqs:") for each in self.actions)


def grants(name: str, resources: Mapping[str, Mapping[str, Any]]) -> Iterator[Grant]:
    """Of the role of the Lambda or job `name`."""
    role = references(resources[name]["Properties"].get("Role")) or _roles_of_jobs(resources)
    return granted_to(role, resources)


def who_may(verb: str, target: str, resources: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The Lambdas and jobs whose role lets them do that to a resource."""
    for name, each in resources.items():
        if each["Type"] in {FUNCTION, JOB}:
            granted = (grant for grant in grants(name, resources) if target in grant.on)
            if any(verb in grant.verbs for grant in granted):
                yield name


def granted_to(role: set[str], resources: Mapping[str, Mapping[str, Any]]) -> Iterator[Grant]:
    """By the policies of a role, named as the template names it."""
    for each in resources.values():
        if each["Type"] == "AWS::IAM::Policy" and references(each["Properties"]["Roles"]) & role:
            for statement in each["Properties"]["PolicyDocument"]["Statement"]:
                if statement["Effect"] == "Allow":
                    actions, on = statement["Action"], references(statement["Resource"])
                    named = [actions] if isinstance(actions, str) else actions
                    yield Grant(frozenset(named), frozenset(on & resources.keys()))


def _roles_of_jobs(resources: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """EMR Serverless gets a role with each run, not with the application."""
    return {name for name in resources if name.startswith(_NIGHT)}


def _verb(action: str) -> str:
    if action == "Publish":
        return "tells"
    if action in _CALLS:
        return "calls"
    return "reads" if action.startswith(_READS) else "writes"
