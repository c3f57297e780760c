"""What the synthesized template says of itself: who sends what to whom, and a picture of it."""
