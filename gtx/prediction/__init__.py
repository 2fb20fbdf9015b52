"""From molecules to predictions: the model file, the predictor, intervals."""

from __future__ import annotations

from gtx.lazy import lazy_names

# the command line reads names without torch
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "model_file": ("ModelHeader", "load_model", "save_model"),
        "loading": ("load",),
        "beside": ("WithNeighbours",),
        "packaged": ("FOUNDATION", "foundation_card", "model_path"),
        "predictor": ("Predictor",),
        "versions": ("library_versions",),
        "streaming": ("predict_table",),
        "selecting": ("Selection",),
        "library": ("predict_library",),
        "frames": ("FramePredictor",),
    },
)
