"""Symptoms of KMS keys and of messages that are not encrypted."""
