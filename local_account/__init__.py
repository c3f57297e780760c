"""An AWS account on the loopback interface, for the demo and the tests; nothing here is deployed."""
