"""Parts of `gtx.nn` again, as loops in C on a processor, for prediction: where no gradient is wanted.

Without a C compiler, or with `GTX_COMPILED=0`, the plain forms beside which they stand run.
"""
