"""Changes to MiniStack's SQS where it behaves differently from AWS's SQS."""
