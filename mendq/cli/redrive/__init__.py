"""The commands about DLQ messages and quarantined messages: see them, send them back, drop them."""
