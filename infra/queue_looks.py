"""What our roles may look at, by kind, as IAM names it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam

from functions.healing.looks import LookAction
from infra.own_queues import queue_arn


def look_statements(stack: Stack, looks: Iterable[LookAction]) -> Iterator[iam.PolicyStatement]:
    """One statement for each kind of resource among `looks`."""
    wanted = sorted(looks, key=lambda each: each.iam_action)
    for kind, resource in looked_at(stack, wanted).items():
        actions = [each.iam_action for each in wanted if each.resource == kind]
        yield iam.PolicyStatement(actions=actions, resources=[resource])


def looked_at(stack: Stack, looks: Iterable[LookAction]) -> dict[str, str]:
    """The resources of `looks` by kind; cdk-nag is told from here why they are so wide."""
    return {kind: _RESOURCES[kind](stack) for kind in sorted({each.resource for each in looks})}


def _every_function(stack: Stack) -> str:
    return stack.format_arn(
        service="lambda",
        resource="function",
        resource_name="*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )


_RESOURCES: dict[str, Callable[[Stack], str]] = {
    "queue": lambda stack: queue_arn(stack, "*"),
    "function": _every_function,
    "any": lambda _: "*",
}
