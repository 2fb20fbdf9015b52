"""A model in closed form: ridge regression with a kernel of circular substructures and descriptors."""

from __future__ import annotations

from gtx.kernel.counts import Counts
from gtx.kernel.kernels import DescriptorKernel, TanimotoKernel
from gtx.kernel.regression import KernelRidge
from gtx.kernel.ridge import Solution, solve

__all__ = ["Counts", "DescriptorKernel", "KernelRidge", "Solution", "TanimotoKernel", "solve"]
