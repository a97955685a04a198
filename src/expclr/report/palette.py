"""Colours for light and dark pages, told apart by colour-blind readers too."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["CLASSES_DARK", "CLASSES_LIGHT", "RAMP_DARK", "RAMP_LIGHT", "css_variables", "ramp"]

# Found by maximising the smallest OKLab distance between any two of them, as seen with normal
# vision and with each kind of colour blindness, at a contrast of at least 3 to the page.
CLASSES_LIGHT = (
    *("#225cbc", "#ca6501", "#4c9373", "#963e75"),
    *("#059de7", "#695507", "#522183", "#691f30"),
)
CLASSES_DARK = (
    *("#6a92fe", "#f5a75d", "#96f5cf", "#c786a0"),
    *("#82cafe", "#a07702", "#7f61b5", "#ba456f"),
)

# Lightness, chroma and hue (OKLCH): equal steps of lightness from violet to yellow.
RAMP_LIGHT = (
    (0.32, 0.13, 300),
    (0.445, 0.12, 265),
    (0.57, 0.10, 220),
    (0.695, 0.12, 165),
    (0.82, 0.16, 110),
)
RAMP_DARK = (
    (0.45, 0.15, 300),
    (0.57, 0.13, 265),
    (0.69, 0.11, 220),
    (0.81, 0.13, 165),
    (0.93, 0.17, 110),
)
RAMP_STEPS = 32

_OKLAB_TO_LMS = np.array(
    [
        [1.0, 0.3963377774, 0.2158037573],
        [1.0, -0.1055613458, -0.0638541728],
        [1.0, -0.0894841775, -1.2914855480],
    ]
)
_LMS_TO_RGB = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
)


def ramp(anchors: tuple[tuple[float, float, float], ...], steps: int = RAMP_STEPS) -> list[str]:
    """Hex colours between OKLCH anchors, perceptually even.

    Examples
    --------
    >>> ramp(((0.0, 0.0, 0.0), (1.0, 0.0, 0.0)), 3)
    ['#000000', '#636363', '#ffffff']
    """
    L, C, h = np.array(anchors, dtype=np.float64).T
    lab = np.stack([L, C * np.cos(np.radians(h)), C * np.sin(np.radians(h))], axis=1)
    at, places = np.linspace(0, 1, steps), np.linspace(0, 1, len(lab))
    return _hex(np.stack([np.interp(at, places, column) for column in lab.T], axis=1))


def css_variables(classes: tuple[str, ...], sequence: list[str]) -> str:
    """``--c0: ...; --q0: ...;`` for the classes' colours and the sequence's.

    Examples
    --------
    >>> css_variables(("#111111",), ["#222222", "#333333"])
    '--c0:#111111;--q0:#222222;--q1:#333333;--ramp:#222222,#333333'
    """
    named = [f"--c{i}:{colour}" for i, colour in enumerate(classes)]
    named += [f"--q{i}:{colour}" for i, colour in enumerate(sequence)]
    return ";".join([*named, f"--ramp:{','.join(sequence)}"])


def _hex(lab: NDArray[np.float64]) -> list[str]:
    linear = np.clip((lab @ _OKLAB_TO_LMS.T) ** 3 @ _LMS_TO_RGB.T, 0, 1)
    rgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return ["#{:02x}{:02x}{:02x}".format(*np.rint(255 * row).astype(int)) for row in rgb]
