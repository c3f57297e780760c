"""Cost estimates for `mendq cost`: an idle stack, and a trail that logs the calls to queues."""
