"""Symptoms of calls that a policy refuses, policies that allow too much, and missing queues."""
