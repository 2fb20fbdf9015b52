"""Annex: generation of texts from molecules, token by token: model, task, decoding and report."""
