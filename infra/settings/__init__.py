"""The settings of a deployment. Nothing here knows CDK or AWS: a mistake is found at once."""
