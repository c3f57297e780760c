"""EventBridge Scheduler: time zones, context attributes and roles, which MiniStack leaves out."""
