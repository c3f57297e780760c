"""`make demo`: queues that fail for real, and what Mendq does about each."""
