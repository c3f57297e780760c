"""Symptoms that only FIFO queues have: message groups, deduplication and throughput."""
