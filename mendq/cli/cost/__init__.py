"""The costs for `mendq cost`: of an idle stack, and of logging the calls to the queues."""
