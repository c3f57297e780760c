"""Find the DLQs that Mendq made, from the writes in the case store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mendq.aws.queue import read_tags_if_allowed
from mendq.cases import items
from mendq.cases.transactions import Table
from mendq.model.queue import parse_queue_arn
from mendq.model.steps import CreateDlq
from mendq.model.tags import MODE_OFF_VALUE, MODE_TAG

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mendq.aws.clients import Clients
    from mendq.model.consent import Consent


class MadeDlqs(Table, frozen=True):
    """The DLQs that Mendq made, read from the records of its writes in the case store.

    Methods raise CaseStoreUnavailable, or CaseStoreUnreadable if an item cannot be read.
    """

    def is_made_by_mendq(self, source_arn: str, dlq_arn: str) -> bool:
        """Return True if Mendq made this DLQ for that source and has not rolled it back."""
        return self.load_made_dlq_arn(source_arn) == dlq_arn

    def load_made_dlq_arn(self, source_arn: str) -> str:
        """Return the ARN of the DLQ that Mendq made for that source.

        Return an empty text if Mendq made none, or if the write was rolled back.
        """
        record_item = self.get(items.attribute_key(source_arn, CreateDlq.attribute))
        with items.convert_decode_errors(f"the DLQ that was made for {source_arn}"):
            return items.read_attribute_record(record_item).last_written_value or ""

    def find_managed_source(
        self,
        dlq_arn: str,
        tags: Mapping[str, str],
        source_arns: Iterable[str],
        clients: Clients,
        consent: Consent,
    ) -> str:
        """Return a managed source for which Mendq made the DLQ; an empty text if there is none.

        The text is also empty if the DLQ's own `mendq` tag is `off`. Mendq scans a DLQ with such a
        source together with the source, in observe mode.

        Args:
            dlq_arn: The DLQ.
            tags: The DLQ's own tags.
            source_arns: The queues that have this DLQ.
            clients: The clients that read the tags of the sources.
            consent: The settings that say which queues are managed.

        Raises:
            FactsUnavailable: The tags of a source cannot be read.
        """
        if tags.get(MODE_TAG) == MODE_OFF_VALUE:
            return ""
        for source_arn in source_arns:
            if self.is_made_by_mendq(source_arn, dlq_arn):
                mode = consent.mode_of(
                    parse_queue_arn(source_arn).name, read_tags_if_allowed(clients, source_arn)
                )
                if mode is not None:
                    return source_arn
        return ""
