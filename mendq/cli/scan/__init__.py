"""What `mendq scan` shows: what was found, what would come of it, what looking cost."""
