"""The kernel model: ridge regression in closed form, with a kernel of substructures, descriptors and embeddings."""

from __future__ import annotations

from gtx.kernel.kernels import DescriptorKernel, TanimotoKernel
from gtx.kernel.regression import KernelRidge, LearningCurve, measure_learning_curves
from gtx.kernel.ridge import solve_kernel_ridge

__all__ = [
    "DescriptorKernel",
    "KernelRidge",
    "LearningCurve",
    "TanimotoKernel",
    "measure_learning_curves",
    "solve_kernel_ridge",
]
