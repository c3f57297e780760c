"""Score `mendq lint` on templates and trouble reports of others."""
