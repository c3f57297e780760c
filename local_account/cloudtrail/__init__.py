"""CloudTrail: records of the real shape, in the event history, trails and on the default bus."""
