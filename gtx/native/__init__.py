"""C compiled on this machine for its CPU, and elementwise functions in it: dropout and GELU.

Without a C compiler, or with `GTX_COMPILED=0`, plain torch runs.
"""
