"""Symptoms of the messages themselves: too long, or about to expire."""
