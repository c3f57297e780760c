"""Symptoms of consumers that fail, stop, are throttled, or receive more often than needed."""
