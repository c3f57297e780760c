"""Commands with which people change an event source mapping. Mendq itself changes none.

Every such command of the catalogue is made here, so that none is printed that Lambda would refuse.
https://docs.aws.amazon.com/lambda/latest/api/API_UpdateEventSourceMapping.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.mapping import MappingSettings, list_mapping_refusals
from mendq.notifications.commands import list_consumers_command, make_aws_command
from mendq.notifications.text import to_plain_text


@dataclass(frozen=True)
class MappingChange:
    """A change of a queue's event source mapping that a person could make.

    Attributes:
        facts: The queue.
        consumer: The mapping and its function as they are.
        changed_consumer: The same with the new settings.
    """

    facts: Facts
    consumer: LambdaConsumer
    changed_consumer: LambdaConsumer

    @property
    def refusal(self) -> str:
        """Why Lambda would refuse the change; empty if it takes it.

        Settings that the mapping has already are not judged: Lambda took them, so AWS allows more
        than is written here. Lambda compares the two timeouts at every change of a mapping:
        https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
        """
        visibility_seconds = self.facts.visibility_seconds
        timeout_seconds = self.consumer.timeout_seconds
        if timeout_seconds > visibility_seconds:
            return (
                f"the queue's visibility timeout of {visibility_seconds:,} s must first be at "
                f"least the function's timeout of {timeout_seconds:,} s"
            )
        accepted_already = tuple(list_mapping_refusals(self._make_settings(self.consumer)))
        for reason in list_mapping_refusals(self._make_settings(self.changed_consumer)):
            if reason not in accepted_already:
                return reason
        return ""

    @property
    def command(self) -> str:
        """The command that makes the change. If Lambda would refuse it, one that only reads."""
        if self.refusal or not self.consumer.mapping_id:
            return list_consumers_command(self.facts.queue_arn)
        options = " ".join(self._list_options())
        mapping_options = f"--uuid {to_plain_text(self.consumer.mapping_id, 64)} {options}"
        return make_aws_command(
            "lambda update-event-source-mapping", self.facts.queue_arn, mapping_options
        )

    def _make_settings(self, consumer: LambdaConsumer) -> MappingSettings:
        return MappingSettings(
            is_fifo=self.facts.is_fifo,
            batch_size=consumer.batch_size,
            batching_window_seconds=consumer.batching_window_seconds,
            maximum_concurrency=consumer.maximum_concurrency,
            provisioned_pollers=consumer.provisioned_pollers,
        )

    def _list_options(self) -> Iterator[str]:
        """Yield the command's option for each setting that changes."""
        old, new = self.consumer, self.changed_consumer
        if new.batch_size != old.batch_size:
            yield f"--batch-size {new.batch_size}"
        if new.batching_window_seconds != old.batching_window_seconds:
            yield f"--maximum-batching-window-in-seconds {new.batching_window_seconds}"
        if new.maximum_concurrency != old.maximum_concurrency:
            yield f"--scaling-config MaximumConcurrency={new.maximum_concurrency}"
        pollers = new.provisioned_pollers
        if pollers is not None and pollers != old.provisioned_pollers:
            # AWS does not say which number stays if only one of them is sent, so both are.
            poller_numbers = f"MinimumPollers={pollers.minimum},MaximumPollers={pollers.maximum}"
            yield f"--provisioned-poller-config {poller_numbers}"
        if new.reports_item_failures != old.reports_item_failures:
            yield "--function-response-types ReportBatchItemFailures"


def describe_mapping_change(change: MappingChange) -> str:
    """Return the end of a sentence: the command, or why Lambda would refuse it and what to read."""
    if change.refusal:
        return (
            f"Lambda would refuse the command that helps: {change.refusal}. Correct that first. To "
            f"see the mapping: {change.command}"
        )
    return change.command
