"""Scans that run with the operator's credentials: findings, and what Mendq would do about them."""
