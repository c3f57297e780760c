"""Entry points: read, call, return."""
