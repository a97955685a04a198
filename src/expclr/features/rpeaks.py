"""Where the R peaks of an ECG are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from expclr.errors import ConfigError

__all__ = ["DETECTOR", "LOWEST_SFREQ", "find_rpeaks"]

DETECTOR = "sleepecg.detect_heartbeats"
LOWEST_SFREQ = 61.0  # the detector looks at 5 to 30 Hz
MIRROR, SILENCE = 1.5, 2.0  # seconds


def find_rpeaks(x: NDArray[np.float64], sfreq: float) -> NDArray[np.int64]:
    """Positions of the R peaks of one channel (t,), by sleepecg's version of Pan-Tompkins.

    A flat signal has none, nor has one below 61 Hz or shorter than a second.

    References
    ----------
    Pan and Tompkins, A real-time QRS detection algorithm, IEEE Trans. Biomed. Eng. 32, 1985.
    """
    try:
        from sleepecg import detect_heartbeats
    except ImportError as error:
        raise ConfigError('finding R peaks needs sleepecg: pip install "expclr[ecg]"') from error
    if sfreq < LOWEST_SFREQ or len(x) < sfreq or x.min() == x.max():
        return np.zeros(0, dtype=np.int64)
    peaks = np.asarray(detect_heartbeats(_with_silence(x, sfreq), sfreq), dtype=np.int64)
    return peaks[peaks < len(x)]


def _with_silence(x: NDArray[np.float64], sfreq: float) -> NDArray[np.float64]:
    # The detector's C code (0.6.0) reads two seconds of any signal, and keeps room for five beats
    # a second, less than it may find: without the silence it writes beyond its memory. The mirror
    # goes on beating until then, so that no beat is looked for again before the signal's end.
    mirrored = np.pad(x, (0, min(len(x) - 1, int(MIRROR * sfreq))), mode="reflect")
    return np.pad(mirrored - mirrored[-1], (0, int(SILENCE * sfreq) + 2))
