"""What the rules about the arguments of launches are made of."""
