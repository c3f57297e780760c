"""The stack: one construct per capability. No AWS call, no credentials."""
