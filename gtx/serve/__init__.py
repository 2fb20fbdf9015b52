"""HTTP service of a trained model: predictions for JSON requests and tables, and a web page.

`gtx.serve.app` needs the extra `serve`; the command reads the limits without it.
"""
