"""The child process that imports, traces, lowers, compiles and runs the user's kernels.

It runs under the interpreter of the user's project, so it uses the standard library and jax
alone (0.10.2 and later), and imports nothing else of pallas-fix.
"""
