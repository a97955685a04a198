"""A saved FeatureSpace is the same space, and a forged one is refused."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save
from sklearn.base import clone

from expclr.errors import DataError
from expclr.features.space import FeatureSpace


def through_disk(space):
    """The state as a model folder keeps it: JSON beside safetensors."""
    state = space.state()
    arrays = {key: value for key, value in state.items() if isinstance(value, np.ndarray)}
    values = {key: value for key, value in state.items() if key not in arrays}
    return json.loads(json.dumps(values, allow_nan=False)) | load(save(arrays))


def quietly_fitted(space, F, **names):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "left out of the feature space")
        return space.fit(F, **names)


numbers = st.floats(-1e6, 1e6, width=32) | st.just(np.nan)
words = st.sampled_from(["a", "b", "Ä c", "1", None])
column = st.sampled_from(["number", "word", "flag", "rank", "angle"])


@st.composite
def frames(draw):
    n = draw(st.integers(3, 12))
    kinds = draw(st.lists(column, min_size=1, max_size=5))
    entries = {"number": numbers, "angle": numbers, "word": words, "flag": st.booleans()}
    data = {}
    for j, kind in enumerate(kinds):
        if kind == "rank":
            values = draw(st.lists(st.sampled_from(["lo", "hi"]), min_size=n, max_size=n))
            data[f"{kind}{j}"] = pd.Categorical(values, ["lo", "mid", "hi"], ordered=True)
        else:
            data[f"{kind}{j}"] = draw(st.lists(entries[kind], min_size=n, max_size=n))
    return pd.DataFrame(data)


@settings(max_examples=60, deadline=None)
@given(
    frames(),
    st.sampled_from(["none", "standard", "robust", "quantile"]),
    st.sampled_from([False, True, 0.3, "ledoit_wolf", "oas"]),
    st.floats(0, 10),
)
def test_a_saved_space_gives_the_same_bits(frame, numeric, decorrelate, weight):
    angles = {name: 360 for name in frame if name.startswith("angle")}
    space = FeatureSpace(
        numeric, cyclic=angles, decorrelate=decorrelate, weights={frame.columns[0]: weight}
    )
    try:
        quietly_fitted(space, frame)
    except DataError:
        return
    again = FeatureSpace.from_state(through_disk(space))
    Z = space.transform(frame)
    assert Z.tobytes() == again.transform(frame).tobytes()
    assert list(space.get_feature_names_out()) == list(again.get_feature_names_out())
    assert through_disk(again).keys() == through_disk(space).keys()
    assert np.isfinite(Z[~np.isnan(Z)]).all()


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 1000),
    st.sampled_from(["none", "standard", "robust", "quantile"]),
    st.sampled_from([False, True]),
)
def test_a_saved_space_of_an_array_gives_the_same_bits_and_fits_again(seed, numeric, decorrelate):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((50, 6)) * 10.0 ** rng.integers(-6, 6, 6)
    F[rng.random(F.shape) < 0.2] = np.nan
    F[:, 5] = rng.integers(0, 4, 50)
    space = FeatureSpace(
        numeric,
        categorical=[5],
        weights={0: 3, "g": 2, 4: 0},
        groups={"g": [1, 2]},
        decorrelate=decorrelate,
    )
    space.fit(F)
    again = FeatureSpace.from_state(through_disk(space))
    wanted = space.transform(F).tobytes()
    assert again.transform(F).tobytes() == wanted
    assert again.distance_shares(F) == space.distance_shares(F)
    assert clone(again).fit(F).transform(F).tobytes() == wanted


def state_of_a_mixed_space():
    frame = pd.DataFrame(
        {
            "load": [1.0, 2, 4, 8, np.nan],
            "gear": ["a", "b", "c", "a", None],
            "hour": [1.0, 5, 9, 3, 4],
            "flow": [5.0, 3, 8, 1, 2],
        }
    )
    space = FeatureSpace("quantile", cyclic={"hour": 24}, decorrelate=True)
    return through_disk(space.fit(frame))


def changed(path, value):
    state = state_of_a_mixed_space()
    at = state
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return state


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["format"], 99),
        (["numeric"], "__import__('os')"),
        (["numeric"], ["standard"]),
        (["decorrelate"], "os.system"),
        (["decorrelate"], 7),
        (["max_missing"], "1"),
        (["random_state"], True),
        (["framed"], 1),
        (["empty_rows"], None),
        (["columns"], []),
        (["columns"], {"0": 1}),
        (["columns", 0], "load"),
        (["columns", 0, "name"], 3),
        (["columns", 0, "name"], "gear"),
        (["columns", 0, "index"], 1),
        (["columns", 0, "index"], 10**9),
        (["columns", 0, "kind"], "callable"),
        (["columns", 0, "vocabulary"], ["a"]),
        (["columns", 0, "weight"], float("nan")),
        (["columns", 0, "weight"], -1.0),
        (["columns", 0, "period"], 24.0),
        (["columns", 0, "extra"], 0),
        (["columns", 1, "vocabulary"], []),
        (["columns", 1, "vocabulary"], [{"a": 1}]),
        (["columns", 2, "period"], 0),
        (["columns", 2, "period"], 10**400),
        (["numeric.mean_"], np.zeros(7)),
        (["numeric.mean_"], np.array(["a", "b"])),
        (["numeric.mean_"], np.array([print, print], dtype=object)),
        (["numeric.mean_"], np.array([np.nan, 0.0])),
        (["numeric.mean_"], "zero"),
        (["numeric.scale_"], np.zeros(2)),
        (["numeric.scale_"], np.array([np.nan, 1])),
        (["numeric.quantiles_"], np.zeros((5, 3))),
        (["numeric.quantiles_"], np.zeros((4, 2))),
        (["numeric.quantiles_"], np.array([[4.0, 1], [3, 2], [2, 3], [1, 4], [0, 5]])),
        (["decorrelation.whitening"], np.eye(3)),
        (["decorrelation.mean"], np.array([1, 2])),
    ],
)
def test_a_forged_state_is_refused(path, value):
    with pytest.raises(DataError, match=r"not a saved feature space|save|this version reads"):
        FeatureSpace.from_state(changed(path, value))


@pytest.mark.parametrize("key", sorted(state_of_a_mixed_space()))
def test_a_state_with_a_part_missing_is_refused(key):
    state = state_of_a_mixed_space()
    if key == "random_state":
        return
    del state[key]
    with pytest.raises(DataError):
        FeatureSpace.from_state(state)


@pytest.mark.parametrize("state", [None, 3, "state", [], {}])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(DataError, match="not a saved feature space"):
        FeatureSpace.from_state(state)
