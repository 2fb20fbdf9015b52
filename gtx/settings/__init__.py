"""Settings and options that the command line, the estimators and model files share; read without PyTorch."""
