"""The kernel model: ridge regression in closed form, with a kernel of circular substructures and descriptors."""

from __future__ import annotations

from gtx.kernel.counts import SubstructureCounts
from gtx.kernel.kernels import DescriptorKernel, TanimotoKernel
from gtx.kernel.learning_curve import LearningCurve, learning_curve, learning_curves
from gtx.kernel.regression import KernelRidge
from gtx.kernel.ridge import RidgeSolution, solve_kernel_ridge

__all__ = [
    "DescriptorKernel",
    "KernelRidge",
    "LearningCurve",
    "RidgeSolution",
    "SubstructureCounts",
    "TanimotoKernel",
    "learning_curve",
    "learning_curves",
    "solve_kernel_ridge",
]
