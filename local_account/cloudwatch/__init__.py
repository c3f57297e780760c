"""CloudWatch where MiniStack leaves something out: metrics in log lines, exact dimensions."""
