"""Annex: export of a model to a file that runs without gtx's network code: ONNX, or a program of `torch.export`."""
