"""What `mendq cost` counts: the stack while nothing fails, and seeing the calls of queues."""
