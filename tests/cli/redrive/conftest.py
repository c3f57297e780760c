"""A source, its DLQ, and an operator who looks at both."""

from tests.cli.redrive.dlq import queues, somebody_is_asked

__all__ = ["queues", "somebody_is_asked"]
