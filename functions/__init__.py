"""What the Lambda zips contain, and nothing else."""
