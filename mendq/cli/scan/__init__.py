"""What a scan with an operator's credentials finds, and what would come of it."""
