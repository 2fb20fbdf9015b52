"""Modules of `gtx.nn` again, as loops in C on a CPU, forward and backward.

Without a C compiler, or with `GTX_COMPILED=0`, the plain forms beside which they stand run.
"""
