"""A source, its DLQ, and an operator who looks at both."""

from tests.cli.redrive.dlq import at_once, queues

__all__ = ["at_once", "queues"]
