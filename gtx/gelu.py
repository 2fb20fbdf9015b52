"""The Gaussian error linear unit, for inputs whose shape is never the same twice."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import gelu

from gtx.native.elementwise import activate


class GELU(nn.Module):
    r"""`torch.nn.GELU`, by torch's own kernel, and value for value where no gradient is wanted.

    \[ \mathrm{GELU}(x) = x\, \Phi(x) \]

    On a CPU torch hands contiguous tensors to oneDNN, which compiles code for each shape and keeps it among the
    program's data. Batches of molecules have a new shape nearly every time, and training grew slower and larger with
    every epoch: on ESOL by a quarter in 40, and from 0.8 to 1.15 GiB. oneDNN is passed over by the transpose, a view
    that costs nothing. In training, in single precision on a CPU, one compiled loop yields value and slope.

    Source: Hendrycks and Gimpel 2016 (arXiv:1606.08415).

    Shapes:
        any to the same.
    """

    def forward(self, x: Tensor) -> Tensor:
        activated = activate(x)
        if activated is not None:
            return activated
        return gelu(x.mT).mT if x.dim() > 1 else gelu(x)
