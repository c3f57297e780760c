"""Symptoms of dead-letter queues (DLQs): missing or unfit DLQs, redrive policies, DLQ messages."""
