"""Costs for `mendq cost`: of the stack while nothing fails, and of logging the queues' calls."""
