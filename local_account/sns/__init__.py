"""SNS where MiniStack leaves something out: encrypted topics, subscriptions nobody confirmed."""
