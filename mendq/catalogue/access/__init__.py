"""Symptoms of access: calls that a policy refuses, policies that allow too much, missing queues."""
