"""The floor: a process that makes a boto3 SQS client, and makes one call where a URL is given."""

import sys

import boto3

client = boto3.Session().client("sqs")
for queue_url in sys.argv[1:]:
    client.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"])
