"""The simulated machine: its physics, its honesty, its sameness."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.signal import hilbert
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from expclr.datasets import load_dataset, machine_physics
from expclr.datasets.machine import CLASSES, FAULTS, FEATURES, condition, load, simulate
from expclr.datasets.machine_physics import Machine, bpfi, bpfo, draw_machine, sense
from expclr.errors import ConfigError

HZ = np.fft.rfftfreq(512, 1 / 512)  # one bin a Hz
DRIVE_END = Machine(  # a deep-groove bearing 6205, and sensors without noise
    balls=9,
    diameter_ratio=7.94 / 39.04,
    contact_angle=0.0,
    pole_pairs=2,
    resonance=np.array([200.0, 180.0]),
    damping=np.array([0.08, 0.08]),
    transmission=np.array([3.0, 1.5]),
    gain=np.ones(3),
    phase=np.zeros(2),
    noise=np.zeros(3),
    flow=np.zeros(2),
    residual=np.zeros(2),
    ripple=0.1,
)


@pytest.fixture(scope="module")
def dataset():
    return load()


@pytest.fixture(scope="module")
def small():
    return simulate(12, windows_per_machine=50)


def sound_state(n=40, *, speed=10.0, load=1.0, **faults):
    state = {
        "speed": np.full(n, speed),
        "load": np.full(n, load),
        "gain": np.ones((n, 3)),
        "phase": np.linspace(0, 2 * np.pi, n, endpoint=False),
        "noise": np.ones(n),
        **{fault: np.zeros(n) for fault in FAULTS},
    }
    return state | {fault: np.full(n, float(severity)) for fault, severity in faults.items()}


def spectrum(x):
    """Root mean square over windows of the amplitude at each whole Hz."""
    return np.sqrt((np.abs(np.fft.rfft(x)) ** 2).mean(axis=0)) / 256


def envelope_spectrum(x):
    envelope = np.abs(hilbert(x))
    return spectrum(envelope - envelope.mean(axis=1, keepdims=True))


def peak(values, low, high):
    inside = (low <= HZ) & (high >= HZ)
    return HZ[inside][values[inside].argmax()]


def watch(seed=0, machine=DRIVE_END, **state):
    return sense(machine, sound_state(**state), np.random.default_rng(seed))


@torch.no_grad()
def random_embedding(X):
    torch.manual_seed(0)
    layers = [(3, 64, 31, 2), (64, 64, 9, 2), (64, 64, 9, 1)]
    body = [part for layer in layers for part in (torch.nn.Conv1d(*layer), torch.nn.ReLU())]
    maps = torch.nn.Sequential(*body)(torch.from_numpy(X))
    return torch.nn.Linear(128, 100)(torch.cat([maps.mean(2), maps.amax(2)], dim=1)).numpy()


def test_bearing_frequencies_are_those_printed_for_a_6205():
    assert bpfo(DRIVE_END, 1.0) == pytest.approx(3.585, abs=5e-4)
    assert bpfi(DRIVE_END, 1.0) == pytest.approx(5.415, abs=5e-4)


def test_contact_angle_brings_both_races_closer_to_half_the_balls():
    steep = replace(DRIVE_END, contact_angle=np.deg2rad(60))
    share = 0.5 * 7.94 / 39.04
    np.testing.assert_allclose(bpfo(steep, [2.0, 20.0]), [9 * (1 - share), 90 * (1 - share)])
    np.testing.assert_allclose(bpfi(steep, [2.0, 20.0]), [9 * (1 + share), 90 * (1 + share)])


def test_outer_race_envelope_peaks_at_bpfo():
    radial = watch(speed=10.0, outer_race=1.0)[:, 0]
    assert abs(peak(envelope_spectrum(radial), 5, 60) - bpfo(DRIVE_END, 10.0)) <= 1


def test_inner_race_envelope_shows_bpfi_with_shaft_sidebands():
    inner = envelope_spectrum(watch(speed=10.0, inner_race=1.0)[:, 0])
    f = round(float(bpfi(DRIVE_END, 10.0)))
    highest = 42 + np.argsort(inner[42:80])[-3:]
    assert set(highest) == {f - 10, f, f + 10}
    assert peak(inner, 5, 80) == 10  # one passage through the load zone a turn


def test_outer_race_envelope_has_no_shaft_sidebands():
    outer = envelope_spectrum(watch(speed=10.0, outer_race=1.0)[:, 0])
    f = round(float(bpfo(DRIVE_END, 10.0)))
    assert outer[[10, f - 10, f + 10]].max() < 0.1 * outer[f]


def test_inner_race_impacts_come_once_a_turn_out_of_the_load_zone():
    state = sound_state(1, speed=8.0, inner_race=1.0)
    strong = np.abs(hilbert(sense(DRIVE_END, state, np.random.default_rng(0))[0, 0]))
    angle = 2 * np.pi * 8 * np.arange(512) / 512
    loaded = np.cos(angle) > 0.3
    assert strong[loaded].mean() > 3 * strong[np.cos(angle) < -0.5].mean()


@pytest.mark.parametrize("fault", FAULTS)
def test_vibration_grows_in_proportion_to_severity(fault):
    rms = [watch(**{fault: s})[:, :2].std() for s in (0.25, 0.5, 1.0)]
    np.testing.assert_allclose(rms, rms[0] * np.array([1, 2, 4]), rtol=1e-9)


def test_imbalance_is_a_radial_line_at_1x_that_grows_with_speed_squared():
    slow, fast = (watch(speed=f, imbalance=1.0) for f in (8.0, 16.0))
    assert peak(spectrum(slow[:, 0]), 1, 256) == 8
    response = [abs(1 / (1 - r**2 + 0.16j * r)) for r in (8 / 200, 16 / 200)]
    wanted = 4 * response[1] / response[0]
    assert spectrum(fast[:, 0])[16] / spectrum(slow[:, 0])[8] == pytest.approx(wanted)
    assert spectrum(slow[:, 0])[8] > 3 * spectrum(slow[:, 1])[8]


def test_misalignment_is_mostly_2x_on_the_axial_sensor_with_3x():
    radial, axial = (spectrum(x) for x in watch(misalignment=1.0)[:, :2].swapaxes(0, 1))
    assert peak(axial, 1, 256) == 20
    assert axial[20] > 2 * radial[20]
    assert axial[30] > 0.2 * axial[20]


def test_looseness_has_half_orders_and_many_harmonics():
    radial = spectrum(watch(looseness=1.0)[:, 0])
    between = np.delete(radial[:101], np.arange(0, 101, 5)).max()
    assert between < 1e-9
    assert (radial[5:101:5] > 0.03).all()
    assert radial[5] > 0.2


def test_orders_above_half_the_sampling_frequency_are_not_folded_back():
    radial = spectrum(watch(speed=64.0, looseness=1.0)[:, 0])
    assert set(HZ[radial > 1e-9]) == {32.0 * k for k in range(1, 8)}


def test_current_is_the_supply_with_sidebands_at_the_shaft_speed():
    load = 0.8
    quiet, unbalanced = (watch(speed=10.0, load=load, imbalance=s)[:, 2] for s in (0.0, 1.0))
    supply = 2 * 10.0 / (1 - 0.01 - 0.05 * load)
    assert abs(peak(spectrum(quiet), 1, 90) - supply) <= 1
    gain = spectrum(unbalanced)[round(supply) + 10] / spectrum(quiet)[round(supply) + 10]
    assert gain > 3


def test_current_grows_with_load():
    low, high = (watch(load=x)[:, 2].std() for x in (0.2, 1.0))
    assert high > 1.5 * low


def test_ringing_is_the_sum_of_decaying_sines_since_each_impact():
    rng = np.random.default_rng(3)
    times = rng.uniform(-0.2, 1.1, (2, 7))
    strengths = rng.uniform(0.5, 2, (2, 7))
    frequency, damping = 170.0, 0.05
    w = 2 * np.pi * frequency
    wanted = np.zeros((2, 512))
    for row in range(2):
        for at, strength in zip(times[row], strengths[row], strict=True):
            for m in range(512):
                u = m / 512 - at
                if u > 0:
                    decay = np.exp(-damping * w * u)
                    wanted[row, m] += strength * decay * np.sin(np.sqrt(1 - damping**2) * w * u)
    got = machine_physics._ring(times, strengths, frequency, damping)
    np.testing.assert_allclose(got, wanted, atol=1e-9)


def test_impacts_keep_their_mean_rate_and_slip_at_random():
    times = machine_physics._impact_times(np.full(300, 40.0), np.random.default_rng(0))
    intervals = np.diff(times, axis=1) * 40
    assert intervals.mean() == pytest.approx(1, abs=1e-3)
    assert intervals.std() == pytest.approx(0.01, rel=0.05)
    assert (times[:, 0] < 0).all()
    assert (times[:, -1] > 1).all()


def test_sensor_gain_scales_its_channel_only():
    state = sound_state(imbalance=0.5)
    louder = state | {"gain": state["gain"] * [1, 2, 1]}
    X, Y = (sense(DRIVE_END, s, np.random.default_rng(0)) for s in (state, louder))
    np.testing.assert_array_equal(Y, X * np.array([1.0, 2.0, 1.0])[:, None])


def test_noise_is_that_of_machine_and_window():
    noisy = replace(DRIVE_END, noise=np.array([0.2, 0.3, 0.0]))
    state = sound_state(200) | {"noise": np.full(200, 2.0)}
    X = sense(noisy, state, np.random.default_rng(0))
    np.testing.assert_allclose(X[:, :2].std(axis=(0, 2)), [0.4, 0.6], rtol=0.01)


def test_flow_noise_has_its_level_and_falls_off_above_20_hz():
    flow = replace(DRIVE_END, flow=np.array([0.5, 0.0]))
    X = sense(flow, sound_state(200), np.random.default_rng(0))[:, 0]
    assert X.std() == pytest.approx(0.5, rel=0.03)
    power = spectrum(X) ** 2
    assert power[1:5].mean() > 1.7 * power[18:23].mean() > 8 * power[80:].mean()


def test_class_is_the_most_severe_fault_or_healthy_below_the_alarm(small):
    windows, state = small
    for i in range(len(windows)):
        severities = [state[fault][i] for fault in FAULTS]
        worst = max(severities)
        wanted = "healthy" if worst < 0.25 else FAULTS[severities.index(worst)]
        assert CLASSES[windows.y[i]] == wanted


def test_every_machine_passes_through_all_classes_roughly_balanced(dataset):
    for part in dataset:
        for machine in np.unique(part.group):
            assert set(part.y[part.group == machine]) == set(range(6))
        share = np.bincount(part.y) / len(part)
        assert 0.12 < share.min() < share.max() < 0.22
        assert len(set(share)) > 1


def test_minor_faults_stand_under_the_dominant_one(small):
    windows, state = small
    severities = np.sort(np.stack([state[fault] for fault in FAULTS]), axis=0)
    assert (severities >= 0).all()
    assert (severities <= 1).all()
    faulty = windows.y > 0
    assert 0.1 < (severities[-2, faulty] > 0.15).mean() < 0.6
    assert (severities[-1, faulty] < 0.4).mean() > 0.1


def test_machines_of_test_are_not_in_train(dataset):
    train, test = dataset
    assert not set(train.group) & set(test.group)
    assert sorted(set(test.group)) == [f"m{m}" for m in range(30, 42)]


def test_machines_differ_in_bearing_resonance_and_sensors(small):
    _, state = small
    assert len(np.unique(np.round(state["bpfo"] / state["speed"], 6))) == 12
    first, second = (draw_machine(np.random.default_rng(seed)) for seed in (0, 1))
    assert (first.resonance != second.resonance).all()
    assert (first.gain != second.gain).all()
    assert (first.residual != second.residual).all()


def test_shapes_and_names(dataset):
    train, test = dataset
    assert (train.X.shape, test.X.shape) == ((1500, 3, 512), (600, 3, 512))
    assert (train.X.dtype, train.F.dtype) == (np.float32, np.float32)
    assert (train.sfreq, train.name) == (512.0, "machine")
    assert train.feature_names == FEATURES
    assert train.class_names == CLASSES
    train.check_finite()


def test_same_seed_gives_the_same_bytes_and_another_seed_does_not():
    def digest(seed):
        windows, state = simulate(2, windows_per_machine=10, random_state=seed)
        values = [windows.X, windows.F, windows.y, *state.values()]
        return hashlib.sha256(b"".join(v.tobytes() for v in values)).hexdigest()

    assert digest(3) == digest(3)
    assert digest(3) != digest(4)


def test_a_machine_is_the_same_however_many_others_there_are():
    few, many = (simulate(m, windows_per_machine=8)[0] for m in (1, 3))
    np.testing.assert_array_equal(many.X[:8], few.X)
    np.testing.assert_array_equal(many.F[:8], few.F)


def test_a_fifth_of_laser_readings_and_a_few_others_are_missing(dataset):
    missing = np.isnan(dataset[0].F).mean(axis=0)
    laser = FEATURES.index("misalignment_laser")
    assert 0.17 < missing[laser] < 0.27
    assert (np.delete(missing, laser) > 0).all()
    assert (np.delete(missing, laser) < 0.04).all()


def test_rig_readings_follow_the_state_with_an_error(small):
    windows, state = small
    for i, fault in enumerate(FAULTS, start=2):
        seen = ~np.isnan(windows.F[:, i])
        assert 0.6 < np.corrcoef(windows.F[seen, i], state[fault][seen])[0, 1] < 0.9


def test_envelope_features_tell_the_races_apart(small):
    windows, _ = small
    difference = windows.F[:, 10] - windows.F[:, 11]  # BPFO less BPFI, dB
    healthy, outer, inner = (
        np.nanmean(difference[windows.y == CLASSES.index(name)])
        for name in ("healthy", "outer_race", "inner_race")
    )
    assert inner + 3 < healthy < outer - 8


def test_raw_features_are_a_serious_rival_but_not_the_answer(dataset):
    train, test = dataset
    model = make_pipeline(
        SimpleImputer(strategy="median"), StandardScaler(), LogisticRegression(max_iter=2000)
    )
    assert 0.80 < model.fit(train.F, train.y).score(test.F, test.y) < 0.93


def test_a_random_network_does_not_give_the_classes_away(dataset):
    train, test = dataset
    scale = train.X.std(axis=(0, 2))[:, None]
    Z_train, Z_test = (random_embedding(part.X / scale) for part in dataset)
    nearest = KNeighborsClassifier(1).fit(Z_train, train.y)
    assert nearest.score(Z_test, test.y) < 0.6


def test_is_a_dataset_by_name():
    train, test = load_dataset("machine", n_machines=2, test_machines=1, windows_per_machine=6)
    assert (len(train), len(test)) == (6, 6)


@pytest.mark.parametrize("test_machines", [0, 4, -1])
def test_a_split_without_train_or_test_is_refused(test_machines):
    with pytest.raises(ConfigError, match=f"test_machines is {test_machines} of 4"):
        load(n_machines=4, test_machines=test_machines)


@pytest.mark.parametrize("name", ["n_machines", "windows_per_machine"])
def test_nothing_to_simulate_is_refused(name):
    with pytest.raises(ConfigError, match=f"{name} is 0"):
        simulate(**{"n_machines": 2, name: 0})


def test_one_window_a_machine_is_enough():
    windows, state = simulate(1, windows_per_machine=1)
    assert windows.X.shape == (1, 3, 512)
    assert condition(state).shape == (1,)
