"""What of a template MiniStack cannot deploy: provisioned here, or accepted and listed."""
