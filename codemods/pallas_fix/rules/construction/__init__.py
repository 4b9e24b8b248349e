"""What can be wrong where an accumulator is made: one module for each kind of trouble.

Each module yields `Trouble`, which the rule TPU003 turns into findings.
"""
