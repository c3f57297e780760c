"""EMR Serverless for the nightly job: job runs on this machine's Spark, one at a time."""
