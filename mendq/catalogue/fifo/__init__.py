"""Symptoms of message groups and deduplication, most of them on FIFO queues."""
