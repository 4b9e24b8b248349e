"""What API002 is made of: the table of arguments, and what it makes of a call."""
