"""The sum of `gtx.attention.definition` again, compiled: a loop in C on a CPU, Triton kernels on a GPU.

Where neither computes an attention, or the environment has `GTX_COMPILED=0`, matrix products in plain torch do. So they
do on a GPU where the kernels fail a trial before their first use (`verification.verify`), with a line that says why.
"""
