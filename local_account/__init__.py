"""An AWS account on the loopback interface for demo and tests; nothing here is deployed."""
