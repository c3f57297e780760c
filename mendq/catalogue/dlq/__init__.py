"""Symptoms of dead-letter queues: missing or unfit DLQs, redrive policies, and DLQ messages."""
