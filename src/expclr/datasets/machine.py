"""Dataset ``machine``: a simulated rotating machine, its faults, and what experts measure on it.

Two vibration sensors and a current sensor watch 1 s of a machine at 512 Hz. Behind a window is a
continuous state: speed, load, the severities of five faults, and nuisances (sensor gain and phase,
noise). The class follows from the severities alone, see :func:`condition`. Each machine has its own
bearing, resonances, sensors, noise and residual faults, so that a new machine is a real shift. The
physics and the papers it follows are in :mod:`expclr.datasets.machine_physics`.

The twelve expert features are what a costly test rig reads (speed, load and a wear figure for each
fault, all with the rig's error) and what an engineer who knows the machine's geometry reads off the
spectra and the envelope. The laser alignment is missing in a fifth of the windows, because the
machine has to stand still for it; any other value gets lost now and then.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from expclr.datasets.machine_physics import (
    SFREQ,
    TIMEPOINTS,
    Machine,
    State,
    bpfi,
    bpfo,
    draw_machine,
    sense,
)
from expclr.errors import ConfigError
from expclr.windows import Windows

__all__ = ["CLASSES", "FAULTS", "FEATURES", "condition", "load", "simulate"]

Array = NDArray[np.float64]

FAULTS = ("imbalance", "misalignment", "outer_race", "inner_race", "looseness")
CLASSES = ("healthy", *FAULTS)
CHANNELS = ("vibration_radial", "vibration_axial", "current")
FEATURES = (
    "shaft_speed_rpm",
    "load_percent",
    "imbalance_balancing_rig",
    "misalignment_laser",
    "outer_race_wear",
    "inner_race_wear",
    "looseness_inspection",
    "radial_rms_db",
    "radial_1x_db",
    "axial_2x_db",
    "envelope_bpfo_db",
    "envelope_bpfi_db",
)
ALARM = 0.25  # the severity from which a fault is called one
RIG_ERROR = 0.18  # standard deviation of one wear reading
RIG_CALIBRATION = 0.1  # standard deviation of the log gain of a machine's wear readings
BAND_ERROR = 3.0  # dB, standard deviation of one level
LASER_MISSING = 0.2
LOST = 0.02


def load(
    root: str | None = None,
    *,
    n_machines: int = 42,
    windows_per_machine: int = 50,
    test_machines: int = 12,
    random_state: int = 0,
) -> tuple[Windows, Windows]:
    """Simulate the dataset as (train, test); the test machines are not in train.

    Parameters
    ----------
    root : str, optional
        Not used: every dataset loader has it, and this one reads no file.
    n_machines : int
        Machines in train and test together.
    windows_per_machine : int
    test_machines : int
        How many machines, the last ones, are held out for test.
    random_state : int
        The same number gives the same bytes.

    Examples
    --------
    >>> train, test = load(n_machines=3, test_machines=1)
    >>> test
    Windows(machine: 50 windows, 3 channels x 512 timepoints, 12 features, 6 classes, 1 groups)
    >>> sorted(set(train.group.tolist())), sorted(set(test.group.tolist()))
    (['m00', 'm01'], ['m02'])
    """
    if not 0 < test_machines < n_machines:
        raise ConfigError(
            f"test_machines is {test_machines} of {n_machines} machines: "
            "give at least one, and leave at least one for train"
        )
    windows, _ = simulate(
        n_machines, windows_per_machine=windows_per_machine, random_state=random_state
    )
    return windows.split_by_group(
        [_machine_id(m) for m in range(n_machines - test_machines, n_machines)]
    )


def simulate(
    n_machines: int = 42, *, windows_per_machine: int = 50, random_state: int = 0
) -> tuple[Windows, State]:
    """Simulate machines and return their windows with the latent state behind each.

    A machine is the same however many others are simulated with it.

    Parameters
    ----------
    n_machines, windows_per_machine, random_state : int
        As in :func:`load`.

    Returns
    -------
    windows : Windows
    state : dict of arrays with a row for each window
        ``speed`` in Hz, ``load`` from 0 to 1, a severity from 0 to 1 for each of ``FAULTS``, the
        bearing frequencies ``bpfo`` and ``bpfi`` in Hz, and the nuisances ``gain`` (n, 3),
        ``phase`` in rad and ``noise``.

    Examples
    --------
    >>> windows, state = simulate(2, windows_per_machine=6)
    >>> bool((windows.y == condition(state)).all())
    True
    """
    for name, value in (("n_machines", n_machines), ("windows_per_machine", windows_per_machine)):
        if value < 1:
            raise ConfigError(f"{name} is {value}: give a whole number from 1")
    parts = [
        _simulate_one(windows_per_machine, np.random.default_rng([random_state, m]))
        for m in range(n_machines)
    ]
    X, F = (np.concatenate([part[i] for part in parts]).astype(np.float32) for i in (0, 1))
    state = {key: np.concatenate([part[2][key] for part in parts]) for key in parts[0][2]}
    windows = Windows(
        X,
        F=F,
        y=condition(state),
        group=np.repeat([_machine_id(m) for m in range(n_machines)], windows_per_machine),
        sfreq=SFREQ,
        channel_names=CHANNELS,
        feature_names=FEATURES,
        class_names=CLASSES,
        name="machine",
    )
    return windows, state


def condition(state: State) -> NDArray[np.int64]:
    """The class of a state: the most severe fault, healthy when none has reached the alarm.

    Examples
    --------
    >>> import numpy as np
    >>> state = {fault: np.array([0.1, 0.1]) for fault in FAULTS}
    >>> state["looseness"] = np.array([0.2, 0.6])
    >>> [CLASSES[y] for y in condition(state)]
    ['healthy', 'looseness']
    """
    severity = _severities(state)
    return np.where(severity.max(axis=1) < ALARM, 0, 1 + severity.argmax(axis=1))


def _severities(state: State) -> Array:
    """The five faults side by side; (n, 5)."""
    return np.stack([state[fault] for fault in FAULTS], axis=1)


def _machine_id(m: int) -> str:
    return f"m{m:02d}"


def _simulate_one(n: int, rng: np.random.Generator) -> tuple[Array, Array, State]:
    """Signals, features and states of one machine."""
    machine = draw_machine(rng)
    state = _draw_state(n, machine, rng)
    X = sense(machine, state, rng)
    F = np.concatenate([_rig(state, rng), _bands(machine, state, X, rng)], axis=1)
    lost = rng.uniform(size=F.shape) < LOST
    lost[:, FEATURES.index("misalignment_laser")] |= rng.uniform(size=n) < LASER_MISSING
    return X, np.where(lost, np.nan, F), state


def _draw_state(n: int, machine: Machine, rng: np.random.Generator) -> State:
    """Minor faults in every window and, in five of six, one that dominates, incipient or grave."""
    severity = 0.35 * rng.beta(1, 4, (n, len(FAULTS)))
    dominant = rng.permutation(np.arange(n) % len(CLASSES))
    faulty = np.flatnonzero(dominant)
    severity[faulty, dominant[faulty] - 1] = rng.uniform(0.22, 1, len(faulty))
    speed = rng.uniform(7, 14, n)
    return {
        "speed": speed,
        "load": rng.uniform(0.2, 1, n),
        **{fault: severity[:, i] for i, fault in enumerate(FAULTS)},
        "bpfo": bpfo(machine, speed),
        "bpfi": bpfi(machine, speed),
        "gain": np.exp(rng.normal(0, 0.05, (n, 3))),
        "phase": rng.uniform(0, 2 * np.pi, n),
        "noise": np.exp(rng.normal(0, 0.5, n)),
    }


def _rig(state: State, rng: np.random.Generator) -> Array:
    """What the test rig reads, with the calibration of its visit to this machine; (n, 7)."""
    n = len(state["speed"])
    wear = _severities(state) * np.exp(rng.normal(0, RIG_CALIBRATION, len(FAULTS)))
    wear += RIG_ERROR * rng.standard_normal(wear.shape)
    rpm = 60 * state["speed"] * (1 + 0.003 * rng.standard_normal(n))
    percent = 100 * state["load"] + 5 * rng.standard_normal(n)
    return np.column_stack([rpm, percent, wear])


def _bands(machine: Machine, state: State, X: Array, rng: np.random.Generator) -> Array:
    """What an engineer reads off the spectra with the machine's geometry at hand; (n, 5)."""
    radial, axial = (np.abs(np.fft.rfft(X[:, i] * np.hanning(TIMEPOINTS))) for i in (0, 1))
    envelope = np.abs(np.fft.rfft(_envelope(X[:, 0], machine.resonance[0])))
    levels = np.column_stack(
        [
            20 * np.log10(X[:, 0].std(axis=1)),
            _level(radial, state["speed"]),
            _level(axial, 2 * state["speed"]),
            _level(envelope, state["bpfo"]),
            _level(envelope, state["bpfi"]),
        ]
    )
    return levels + BAND_ERROR * rng.standard_normal(levels.shape)


def _envelope(x: Array, centre: float, width: float = 60.0) -> Array:
    """Magnitude of the analytic signal within a band around a resonance, less its mean."""
    spectrum = np.fft.fft(x)
    frequency = np.fft.fftfreq(TIMEPOINTS, 1 / SFREQ)
    spectrum[:, np.abs(frequency - centre) > width] = 0
    envelope = 2 * np.abs(np.fft.ifft(spectrum))
    return envelope - envelope.mean(axis=1, keepdims=True)


def _level(spectrum: Array, frequency: Array) -> Array:
    """Energy within 2 Hz of a frequency, in decibels; (n,)."""
    near = np.abs(np.fft.rfftfreq(TIMEPOINTS, 1 / SFREQ) - frequency[:, None]) <= 2
    return 10 * np.log10((spectrum**2).sum(axis=1, where=near))
