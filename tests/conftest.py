"""What all tests share."""

import numpy as np
import pytest
import torch

from expclr.windows import Windows

# Small tensors on few cores: more threads than this only wait for each other.
torch.set_num_threads(1)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def windows(rng: np.random.Generator) -> Windows:
    """48 windows of 2 channels x 32 timepoints; features and classes can be read from them."""
    size = rng.uniform(0.2, 2, 48)
    pace = rng.uniform(1, 6, 48)
    time = np.linspace(0, 1, 32)
    wave = size[:, None] * np.sin(2 * np.pi * pace[:, None] * time)
    X = np.stack([wave, wave[:, ::-1]], 1) + 0.05 * rng.normal(size=(48, 2, 32))
    return Windows(
        X,
        F=np.stack([size, pace, size * pace], 1),
        y=(pace > 3.5).astype(int) + 2 * (size > 1),
        group=np.repeat(np.arange(6), 8),
        sfreq=32,
        feature_names=("size", "pace", "product"),
        class_names=("slow small", "fast small", "slow large", "fast large"),
        name="waves",
    )
