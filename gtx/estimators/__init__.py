"""scikit-learn estimators: SMILES in, ndarray out."""

from gtx.estimators.estimators import MoleculeClassifier, MoleculeRegressor

__all__ = ["MoleculeClassifier", "MoleculeRegressor"]
