"""Name, unit and meaning of each of the 561 features of UCI HAR, in their published order."""

from __future__ import annotations

from expclr.features.extractor import Feature

__all__ = ["BANDS", "har_features"]

BANDS = tuple(
    (first, first + width - 1)
    for width, last in ((8, 64), (16, 64), (24, 48))
    for first in range(1, last, width)
)
_AXES = ("X", "Y", "Z")
_SIGNALS = {
    "BodyAcc": ("body acceleration", "g"),
    "GravityAcc": ("gravity", "g"),
    "BodyAccJerk": ("jerk of the body acceleration", "g/sample"),
    "BodyGyro": ("angular velocity", "rad/s"),
    "BodyGyroJerk": ("jerk of the angular velocity", "rad/s/sample"),
}
_STATISTICS = {
    "mean": "Mean",
    "std": "Standard deviation",
    "mad": "Mean absolute deviation from the mean",
    "max": "Largest value",
    "min": "Smallest value",
    "sma": "Signal magnitude area (mean absolute value, summed over the axes)",
    "energy": "Energy (mean square)",
    "iqr": "Interquartile range",
    "entropy": "Entropy of the values between 0 and 1 in 256 levels",
}
_SPECTRAL = {
    "maxInds": ("bin", "Position of the highest peak, counted from 0,"),
    "meanFreq()": ("bin", "Mean frequency, weighted by magnitude,"),
}
_ANGLES = {
    "angle(tBodyAccMean,gravity)": "the mean body acceleration and gravity",
    "angle(tBodyAccJerkMean),gravityMean)": "the mean jerk of the body acceleration and gravity",
    "angle(tBodyGyroMean,gravityMean)": "the mean angular velocity and gravity",
    "angle(tBodyGyroJerkMean,gravityMean)": "the mean jerk of the angular velocity and gravity",
    "angle(X,gravityMean)": "the X axis and gravity",
    "angle(Y,gravityMean)": "the Y axis and gravity",
    "angle(Z,gravityMean)": "the Z axis and gravity",
}


def har_features(channels: tuple[str, ...] = ()) -> list[Feature]:
    """The 561 features; names as published, with the axis added where published names repeat."""
    listing: list[Feature] = []
    for signal in _SIGNALS:
        listing += _common("t", signal, _AXES) + _autoregressive(signal, _AXES)
        listing += _correlations(signal)
    for signal in _SIGNALS:
        listing += _common("t", f"{signal}Mag", ()) + _autoregressive(f"{signal}Mag", ())
    for signal in ("BodyAcc", "BodyAccJerk", "BodyGyro"):
        listing += _common("f", signal, _AXES) + _spectral(signal, _AXES) + _bands(signal)
    for signal in ("BodyAccMag", "BodyBodyAccJerkMag", "BodyBodyGyroMag", "BodyBodyGyroJerkMag"):
        listing += _common("f", signal, ()) + _spectral(signal, ())
    return listing + [
        Feature(name, "rad", f"Angle between {what}, means over the window")
        for name, what in _ANGLES.items()
    ]


def _words(signal: str, axis: str = "") -> tuple[str, str]:
    words, unit = _SIGNALS[signal.removesuffix("Mag").replace("BodyBody", "Body")]
    magnitude = "the magnitude of the " if signal.endswith("Mag") else "the "
    return f"{magnitude}{words}" + (f" along {axis}" if axis else ""), unit


def _common(domain: str, signal: str, axes: tuple[str, ...]) -> list[Feature]:
    listing = []
    for statistic, what in _STATISTICS.items():
        for axis in ("",) if statistic == "sma" or not axes else axes:
            words, unit = _words(signal, axis)
            of = "the spectrum of " if domain == "f" else ""
            unit = {"energy": f"({unit})^2", "entropy": "bit"}.get(statistic, unit)
            name = f"{domain}{signal}-{statistic}()" + (f"-{axis}" if axis else "")
            listing.append(Feature(name, unit, f"{what} of {of}{words}"))
    return listing


def _autoregressive(signal: str, axes: tuple[str, ...]) -> list[Feature]:
    return [
        Feature(
            f"t{signal}-arCoeff(){f'-{axis},' if axis else ''}{lag}",
            "",
            f"Coefficient at lag {lag} of an autoregressive model of {_words(signal, axis)[0]}",
        )
        for axis in axes or ("",)
        for lag in range(1, 5)
    ]


def _correlations(signal: str) -> list[Feature]:
    words = _words(signal)[0]
    return [
        Feature(f"t{signal}-correlation()-{a},{b}", "", f"Correlation of {words} along {a} and {b}")
        for a, b in (("X", "Y"), ("X", "Z"), ("Y", "Z"))
    ]


def _spectral(signal: str, axes: tuple[str, ...]) -> list[Feature]:
    listing = [
        Feature(
            f"f{signal}-{name}" + (f"-{axis}" if axis else ""),
            unit,
            f"{what} in the spectrum of {_words(signal, axis)[0]}",
        )
        for name, (unit, what) in _SPECTRAL.items()
        for axis in axes or ("",)
    ]
    for axis in axes or ("",):
        for shape, what in (("skewness", "Skewness"), ("kurtosis", "Excess kurtosis")):
            name = f"f{signal}-{shape}()" + (f"-{axis}" if axis else "")
            listing.append(
                Feature(name, "", f"{what} of the spectrum of {_words(signal, axis)[0]}")
            )
    return listing


def _bands(signal: str) -> list[Feature]:
    listing = []
    for axis in _AXES:
        words, unit = _words(signal, axis)
        listing += [
            Feature(
                f"f{signal}-bandsEnergy()-{low},{high}-{axis}",
                f"({unit})^2",
                f"Energy of {words} from {(low - 0.5) / 2.56:.1f} to {(high + 0.5) / 2.56:.1f} Hz",
            )
            for low, high in BANDS
        ]
    return listing
