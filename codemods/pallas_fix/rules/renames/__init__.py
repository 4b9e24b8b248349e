"""What API001 is made of: the tables of names, where a file uses them, how it imports them."""
