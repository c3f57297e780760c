"""`make demo`: queues whose calls really fail, and what Mendq does about each of them."""
