"""What `mendq sweep` shows: what was found, what would come of it, what looking cost."""
