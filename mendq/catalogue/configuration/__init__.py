"""Symptoms of the configuration around a queue: alarms, tags, and invalid requests of callers."""
