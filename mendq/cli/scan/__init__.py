"""Scans with the operator's credentials: their findings, and what Mendq would do about them."""
