"""Reads and writes AWS: queues, consumers, metrics, DLQs and recent changes.

Who uses which client library:

- The Lambdas use botocore through `clients.LambdaSession`. They do not import boto3, because it
  makes a cold start longer.
- The command line uses boto3, because it reads profiles and endpoints as the AWS CLI does.
  `mendq.aws.operator_session` is the only module here that imports boto3 when it runs.
- Outside this package, `mendq/cli/deploy/record_failed_calls.py` imports boto3 when it runs: people
  copy that one file into a shell where Mendq is not installed. All other imports of boto3 in
  `mendq` are only for type checkers.
- Other packages import botocore's exceptions, to tell AWS's errors apart.
"""
