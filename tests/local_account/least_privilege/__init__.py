"""Every role as synthesized is enough, and no action of it is one too many."""
