"""Symptoms of encryption: KMS keys that cannot be used, and messages that are not encrypted."""
