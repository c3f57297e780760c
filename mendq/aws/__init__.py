"""The only folder that imports boto3."""
