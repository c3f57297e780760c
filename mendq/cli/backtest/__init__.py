"""What a trail's past weeks would have meant: the nightly job's incidents, as heal decides."""
