"""The windows' waveforms, small enough to travel inside a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from expclr.report.payload import pack
from expclr.windows import Windows

__all__ = ["Waveforms"]

_LEVELS = 32767  # of int16 on either side of the middle
_MISSING = -32768
_MAX_VALUES = 1_250_000  # 3.3 MB in the page
_MIN_TIMEPOINTS = 128


@dataclass(frozen=True, eq=False)
class Waveforms:
    """Waveforms as 16-bit whole numbers: ``values * scale + offset`` is the signal.

    Parameters
    ----------
    values : array (n, c, t), int16
        -32768 where there is no value.
    scale, offset : arrays (n, c)
        Of each channel of each window.
    range : array (c, 2)
        Between which values nearly all of a channel's signal lies.
    channel_names : tuple of str
    step : float
        From one value to the next, in ``unit``.
    unit : str
        "s" when the sampling frequency is known, else "timepoint".
    """

    values: NDArray[np.int16]
    scale: NDArray[np.float32]
    offset: NDArray[np.float32]
    range: NDArray[np.float64]
    channel_names: tuple[str, ...]
    step: float
    unit: str

    @classmethod
    def of(cls, windows: Windows) -> Self:
        """The waveforms of these windows.

        Long windows are thinned for display to the minimum and maximum of each short stretch
        of time, so that no peak is lost.

        Examples
        --------
        >>> import numpy as np
        >>> waves = Waveforms.of(Windows(np.arange(8).reshape(1, 2, 4), sfreq=2.0))
        >>> waves.values[0, 0].tolist(), waves.step, waves.unit
        ([-32767, -10922, 10922, 32767], 0.5, 's')
        """
        n, c, t = windows.X.shape
        limit = max(_MIN_TIMEPOINTS, _MAX_VALUES // (n * c))
        stretch = 1 if t <= limit else -(-2 * t // limit)
        # One by one: X may be memory-mapped, and much longer than what is shown of it.
        signal = np.stack([_envelope(_real_values(windows, i), stretch) for i in range(n)])
        values, scale, offset = _quantise(signal)
        every = stretch / 2 if stretch > 1 else 1.0
        return cls(
            values,
            scale,
            offset,
            np.stack([_usual_range(signal[:, i]) for i in range(c)]),
            windows.channel_names or tuple(f"channel {i}" for i in range(c)),
            every / (windows.sfreq or 1.0),
            "s" if windows.sfreq else "timepoint",
        )

    def __len__(self) -> int:
        return len(self.values)

    def payload(self) -> dict[str, Any]:
        return {
            "values": pack(self.values, "<i2"),
            "scale": pack(self.scale),
            "offset": pack(self.offset),
            "range": self.range,
            "channels": self.channel_names,
            "step": self.step,
            "unit": self.unit,
        }


def _real_values(windows: Windows, i: int) -> NDArray[np.float64]:
    """Window i (c, t) with NaN where it is padding or not finite."""
    signal = windows.X[i].astype(np.float64)
    signal[~np.isfinite(signal)] = np.nan
    if windows.lengths is not None:
        signal[:, windows.lengths[i] :] = np.nan
    return signal


def _envelope(signal: NDArray[np.float64], stretch: int) -> NDArray[np.float64]:
    """Minimum and maximum of each stretch of timepoints, in the order in which they come."""
    if stretch == 1:
        return signal
    c, t = signal.shape
    parts = -(-t // stretch)
    padded = np.full((c, parts * stretch), np.nan)
    padded[:, :t] = signal
    padded = padded.reshape(c, parts, stretch)
    missing = np.isnan(padded)
    low, high = np.where(missing, np.inf, padded), np.where(missing, -np.inf, padded)
    pair = np.stack([low.min(axis=2), high.max(axis=2)], axis=2)
    falls = low.argmin(axis=2) > high.argmax(axis=2)
    pair[falls] = pair[falls][:, ::-1]
    pair[~np.isfinite(pair)] = np.nan
    return pair.reshape(c, parts * 2)


def _quantise(
    signal: NDArray[np.float64],
) -> tuple[NDArray[np.int16], NDArray[np.float32], NDArray[np.float32]]:
    missing = np.isnan(signal)
    low = np.where(missing, np.inf, signal).min(axis=2)
    high = np.where(missing, -np.inf, signal).max(axis=2)
    nothing = missing.all(axis=2)
    low[nothing] = high[nothing] = 0.0
    offset, scale = ((low + high) / 2).astype(np.float32), (high - low) / (2 * _LEVELS)
    scale = np.where(scale > 0, scale, 1.0).astype(np.float32)
    levels = np.rint((np.where(missing, 0.0, signal) - offset[..., None]) / scale[..., None])
    values = np.clip(levels, -_LEVELS, _LEVELS).astype(np.int16)
    values[missing] = _MISSING
    return values, scale, offset


def _usual_range(channel: NDArray[np.float64]) -> NDArray[np.float64]:
    known = channel[~np.isnan(channel)]
    return np.quantile(known, [0.005, 0.995]) if len(known) else np.zeros(2)
