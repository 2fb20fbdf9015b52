"""scikit-learn estimators, which take SMILES and return arrays of predictions."""

from gtx.estimators.estimators import MoleculeClassifier, MoleculeRegressor

__all__ = ["MoleculeClassifier", "MoleculeRegressor"]
