"""EMR Serverless as start_night meets it: job runs on this machine's Spark, one at a time."""
