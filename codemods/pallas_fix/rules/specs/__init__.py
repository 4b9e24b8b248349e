"""What the rule about block specs is made of."""
