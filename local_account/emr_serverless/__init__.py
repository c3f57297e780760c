"""EMR Serverless as start_nightly meets it: job runs on this machine's Spark, one at a time."""
