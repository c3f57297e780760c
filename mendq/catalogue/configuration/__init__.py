"""Symptoms of what is set around a queue: alarms, tags, and callers' invalid requests."""
