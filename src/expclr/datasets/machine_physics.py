"""The physics of the simulated rotating machine: what its three sensors see in a given state.

The models follow

- R. B. Randall and J. Antoni, "Rolling element bearing diagnostics - A tutorial", 2011:
  characteristic frequencies, impacts with random slip, resonance and envelope;
- P. D. McFadden and J. D. Smith, "Model for the vibration produced by a single point defect in a
  rolling element bearing", 1984: impulses weighted by the load zone the defect turns through;
- R. B. Randall, "Vibration-based Condition Monitoring", 2011: orders of imbalance, misalignment
  and looseness;
- M. Blödt, P. Granjon, B. Raison and G. Rostaing, "Models for bearing damage detection in
  induction motors using stator current monitoring", 2008: torque ripple as sidebands of the
  supply.

Shaft speeds of 7 to 14 Hz and resonances of 145 to 215 Hz are low for a real machine: they keep the
orders, the impacts and their envelope below the 256 Hz that sampling at 512 Hz can show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import lfilter

__all__ = ["SFREQ", "TIMEPOINTS", "Machine", "State", "bpfi", "bpfo", "draw_machine", "sense"]

Array = NDArray[np.float64]
State = dict[str, Array]

SFREQ = 512.0
TIMEPOINTS = 512
RUN_IN = 128  # timepoints before the window, in which earlier impacts ring up
SLIP = 0.01  # standard deviation of an interval between impacts, of its mean
LOAD_ZONE = 0.5  # the load distribution factor, epsilon of McFadden and Smith
MAINS = 50.0
RATED_SPEED = 12.0


@dataclass(frozen=True, eq=False)
class Machine:
    """What stays the same in one machine and differs between two."""

    balls: int
    diameter_ratio: float  # ball over pitch diameter
    contact_angle: float  # rad
    pole_pairs: int
    resonance: Array  # (2,) Hz, of the path to each vibration sensor
    damping: Array  # (2,)
    transmission: Array  # (2,) share of a bearing impact that reaches each vibration sensor
    gain: Array  # (3,)
    phase: Array  # (2,) rad a shaft revolution, where each vibration sensor sits
    noise: Array  # (3,) standard deviation at each sensor
    flow: Array  # (2,) standard deviation of the low-frequency noise of the process
    residual: Array  # (2,) imbalance and misalignment that are there from the start
    ripple: float  # of the supply, relative to the rated current


def draw_machine(rng: np.random.Generator) -> Machine:
    """A machine at random from the population."""
    return Machine(
        balls=int(rng.integers(7, 10)),
        diameter_ratio=rng.uniform(0.18, 0.28),
        contact_angle=np.deg2rad(rng.uniform(0, 30)),
        pole_pairs=int(rng.integers(2, 4)),
        resonance=rng.uniform([160, 145], [215, 200]),
        damping=rng.uniform(0.1, 0.15, 2),
        transmission=rng.uniform([2.5, 1.0], [3.5, 1.8]),
        gain=np.exp(rng.normal(0, 0.1, 3)),
        phase=rng.uniform(0, 2 * np.pi, 2),
        noise=rng.uniform([0.08, 0.08, 0.01], [0.16, 0.16, 0.04]),
        flow=rng.uniform(0.04, 0.14, 2),
        residual=rng.uniform(0, 0.06, 2),
        ripple=rng.uniform(0.05, 0.25),
    )


def bpfo(machine: Machine, speed: ArrayLike) -> Array:
    """Ball-pass frequency of the outer race in Hz, at a shaft speed in Hz.

    ``balls / 2 * speed * (1 - ratio * cos(angle))``, for an outer race that stands still.
    """
    share = machine.diameter_ratio * np.cos(machine.contact_angle)
    return 0.5 * machine.balls * np.asarray(speed, np.float64) * (1 - share)


def bpfi(machine: Machine, speed: ArrayLike) -> Array:
    """Ball-pass frequency of the inner race in Hz, at a shaft speed in Hz.

    ``balls / 2 * speed * (1 + ratio * cos(angle))``, for an outer race that stands still.
    """
    share = machine.diameter_ratio * np.cos(machine.contact_angle)
    return 0.5 * machine.balls * np.asarray(speed, np.float64) * (1 + share)


def sense(machine: Machine, state: State, rng: np.random.Generator) -> Array:
    """What the sensors see: radial vibration, axial vibration, current; (n, 3, 512)."""
    vibration = _shaft_orders(machine, state, rng)
    vibration += _impacts(machine, state, rng)  # (n, 2, t)
    current = _current(machine, state, rng)  # (n, t)
    X = np.concatenate([vibration, current[:, None]], axis=1)
    X += (machine.noise * state["noise"][:, None])[..., None] * rng.standard_normal(X.shape)
    X[:, :2] += (machine.flow * state["noise"][:, None])[..., None] * _flow(len(X), rng)
    return X * (machine.gain * state["gain"])[..., None]


def _shaft_orders(machine: Machine, state: State, rng: np.random.Generator) -> Array:
    """Vibration locked to the shaft: imbalance, misalignment and looseness; (n, 2, t)."""
    orders = np.arange(1, 21) / 2
    speed = state["speed"]
    force = np.zeros((len(speed), 2, len(orders)))
    relative = (speed / RATED_SPEED) ** 2  # centrifugal force
    at = {order: i for i, order in enumerate(orders)}
    unbalanced = (machine.residual[0] + state["imbalance"]) * relative
    force[:, :, at[1]] += unbalanced[:, None] * [1.0, 0.25]
    misaligned = (machine.residual[1] + state["misalignment"]) * (0.6 + 0.4 * state["load"])
    force[:, :, at[1]] += misaligned[:, None] * [0.05, 0.25]
    force[:, :, at[2]] += misaligned[:, None] * [0.3, 0.9]
    force[:, :, at[3]] += misaligned[:, None] * [0.1, 0.35]
    force += _looseness(orders, state, rng)
    frequency = orders * speed[:, None]  # (n, orders)
    response = _response(machine, frequency) * (frequency < SFREQ / 2)[:, None]
    start = state["phase"][:, None] + machine.phase  # (n, 2)
    start = start[..., None] * orders + rng.normal(0, 0.5, (len(speed), 1, len(orders)))
    turning = np.exp(2j * np.pi * frequency[..., None] * np.arange(TIMEPOINTS) / SFREQ)
    return ((force * response * np.exp(1j * start)) @ turning).real


def _looseness(orders: Array, state: State, rng: np.random.Generator) -> Array:
    """A truncated orbit: many harmonics, and half orders when the foot lands every other turn."""
    n = len(state["speed"])
    shape = orders**-0.5 * np.where(orders % 1, 0.5, 0.7) * np.exp(-orders / 6)
    shape = shape * np.exp(rng.normal(0, 0.3, (n, 1, len(orders))))
    return state["looseness"][:, None, None] * shape * np.array([0.8, 0.4])[:, None]


def _response(machine: Machine, frequency: Array) -> NDArray[np.complex128]:
    """Each vibration path as one degree of freedom, one at low frequency; (n, 2, orders)."""
    ratio = frequency[:, None] / machine.resonance[:, None]
    return np.reciprocal(1 - ratio**2 + 2j * machine.damping[:, None] * ratio)


def _impacts(machine: Machine, state: State, rng: np.random.Generator) -> Array:
    """Bearing impacts, each exciting the decaying resonance of both paths; (n, 2, t)."""
    speed = state["speed"]
    strength = (0.7 + 0.3 * state["load"]) * (speed / RATED_SPEED)
    outer_times = _impact_times(bpfo(machine, speed), rng)  # (n, k)
    outer = (strength * state["outer_race"])[:, None] * np.ones_like(outer_times)
    inner_times = _impact_times(bpfi(machine, speed), rng)
    defect = 2 * np.pi * speed[:, None] * inner_times + state["phase"][:, None]
    inner = (strength * state["inner_race"])[:, None] * _load_zone(defect)
    times = np.concatenate([outer_times, inner_times], axis=1)
    strengths = np.concatenate([outer, inner], axis=1)
    strengths = strengths * np.exp(rng.normal(0, 0.15, strengths.shape))
    return np.stack(
        [
            part * _ring(times, strengths, frequency, damping)
            for part, frequency, damping in zip(
                machine.transmission, machine.resonance, machine.damping, strict=True
            )
        ],
        axis=1,
    )


def _load_zone(angle: Array) -> Array:
    """Load on the race at an angle from the direction of the load; one at its centre."""
    return np.maximum(0, 1 - (1 - np.cos(angle)) / (2 * LOAD_ZONE)) ** 1.5


def _impact_times(frequency: Array, rng: np.random.Generator) -> Array:
    """Seconds from the start of each window to each impact; intervals vary by the slip."""
    count = int(np.ceil((TIMEPOINTS + RUN_IN) / SFREQ * frequency.max() * 1.1)) + 1
    intervals = 1 + SLIP * rng.standard_normal((len(frequency), count))
    intervals[:, 0] = rng.uniform(0, 1, len(frequency))
    return np.cumsum(intervals, axis=1) / frequency[:, None] - RUN_IN / SFREQ


def _ring(times: Array, strengths: Array, frequency: float, damping: float) -> Array:
    """The sum of ``strength * exp(-damping w u) sin(w_d u)``, u the time since each impact.

    A damped sine is one complex pole, so that one recursive filter sums all impacts exactly;
    an impact between two timepoints enters at the later one, turned and decayed until there.
    """
    w = 2 * np.pi * frequency
    pole = np.exp((-damping + 1j * np.sqrt(1 - damping**2)) * w / SFREQ)
    place = times * SFREQ + RUN_IN
    later = np.ceil(place).astype(int)
    rows, hits = np.nonzero((later >= 0) & (later < TIMEPOINTS + RUN_IN))
    kicks = np.zeros((len(times), TIMEPOINTS + RUN_IN), complex)
    wait = (later - place)[rows, hits]
    np.add.at(kicks, (rows, later[rows, hits]), strengths[rows, hits] * pole**wait)
    return lfilter([1], [1, -pole], kicks)[:, RUN_IN:].imag


def _current(machine: Machine, state: State, rng: np.random.Generator) -> Array:
    """Stator current of the inverter-fed motor: the supply, its sidebands and ripple; (n, t)."""
    speed, load = state["speed"], state["load"]
    t = np.arange(TIMEPOINTS) / SFREQ
    supply = machine.pole_pairs * speed / (1 - 0.01 - 0.05 * load)  # slip grows with load
    torque = [
        (speed, 0.02 + 0.1 * state["imbalance"]),
        (2 * speed, 0.01 + 0.1 * state["misalignment"]),
        (0.5 * speed, 0.06 * state["looseness"]),
        (bpfo(machine, speed), 0.03 * state["outer_race"]),
        (bpfi(machine, speed), 0.03 * state["inner_race"]),
    ]
    modulation = np.ones((len(speed), TIMEPOINTS))
    for frequency, depth in torque:
        modulation += depth[:, None] * _wave(frequency, t, rng)
    level = 0.4 + 0.6 * load
    wave = level[:, None] * modulation * _wave(supply, t, rng)
    return wave + machine.ripple * _wave(np.full_like(speed, 2 * MAINS), t, rng)


def _flow(n: int, rng: np.random.Generator) -> Array:
    """Unit noise that falls off from 20 Hz, as flow and process make it; (n, 2, t)."""
    pole = np.exp(-2 * np.pi * 20 / SFREQ)
    white = rng.standard_normal((n, 2, TIMEPOINTS + RUN_IN))
    return lfilter([np.sqrt(1 - pole**2)], [1, -pole], white)[..., RUN_IN:]


def _wave(frequency: Array, t: Array, rng: np.random.Generator) -> Array:
    """A cosine for each window at a random phase; (n, t)."""
    phase = rng.uniform(0, 2 * np.pi, len(frequency))
    return np.cos(2 * np.pi * frequency[:, None] * t + phase[:, None])
