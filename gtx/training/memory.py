"""How much memory there is."""

from __future__ import annotations

from pathlib import Path

import torch


def free_memory(device: torch.device) -> int:
    """Bytes that can be had on the device; where a system does not say, plenty."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    meminfo = Path("/proc/meminfo")
    lines = meminfo.read_text().splitlines() if meminfo.exists() else []
    available = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    return available[0] if available else 2**40
