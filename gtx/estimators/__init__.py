"""scikit-learn estimators: SMILES in, ndarray out."""

from gtx.estimators.classifier import MoleculeClassifier
from gtx.estimators.regressor import MoleculeRegressor

__all__ = ["MoleculeClassifier", "MoleculeRegressor"]
