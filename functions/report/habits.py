"""What a queue keeps doing that has many incidents of one symptom."""

from __future__ import annotations

# After the queue's name, before `: 7 of 17 lease_expired incidents came from it.`
HABITS = {
    "lease_expired": "keeps outrunning its lease",
    "message_too_long": "keeps being sent messages that are too long for it",
    "dedup_id_missing": "keeps being sent messages without a deduplication ID",
    "fifo_throttled": "keeps outrunning its FIFO quota",
    "empty_receives": "keeps being polled faster than its messages come",
    "kms_throttled": "keeps exhausting the KMS quota",
    "kms_denied": "keeps being called without a grant on its key",
    "kms_key_unusable": "keeps a key that cannot be used",
    "access_denied": "keeps turning callers away",
    "queue_missing": "keeps being called although it is not there",
    "in_flight_limit": "keeps reaching its in-flight limit",
}
