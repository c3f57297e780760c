"""CloudTrail for SQS: records of the real shape, in the trail's bucket and on the default bus."""
