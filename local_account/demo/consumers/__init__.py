"""Consumers to learn from, beside each other: docs/consumers.md tells why each is as it is."""
