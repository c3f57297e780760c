"""What MiniStack's SQS does otherwise than AWS's, put right."""
