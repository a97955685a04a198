"""How fast the transform of encoder "rocket" is, and how good its features are, beside aeon's.

    python benchmarks/rocket.py --what speed       # wants aeon, and uci_har under EXPCLR_DATA
    python benchmarks/rocket.py --what accuracy    # the same; without aeon ours alone

Speed: both in this one process and in turn, with as many threads, after aeon's compilation; the
figures are ratios of wall-clock time and of CPU time, which other programs disturb less. The first
case is uci_har, the others are noise. Accuracy: a ridge classifier, its strength chosen by
leave-one-out, on features of uci_har, trained on all labels and on stratified subsets (the subsets
of ``Windows.label_fraction``), tested on the test subjects; features are standardised, those of
Hydra by its own scaler. aeon's transforms have their default settings.

What was tried for the transform on a CPU, best first:
- three times three taps minus all nine: four rows a channel added by ``embedding_bag``, a row being
  256 windows at one timepoint, for some kernels and timepoints at a time; comparison by NumPy into
  bytes, bytes added as words of eight (kept);
- the same on copies of the series, one for each tap, with wider rows: the copies take longer than
  the additions from a few channels on;
- one matrix product for all taps and channels of a dilation: three to five times the time of the
  additions, for one channel as for nine;
- for one channel, sums that kernels share, added by NumPy: no quicker than adding four rows;
- rows of 64 windows instead of 128 or more: four times the time of adding bytes;
- memory of torch instead of NumPy's for the features: a tenth of the time on one channel went into
  clearing pages;
- fewer kernels at a time, to stay inside of the second cache: more time in Python than was saved;
- torch's comparison, which is a fifth as fast as NumPy's;
- sorting each convolution (NumPy's sort: 1 value a nanosecond) and searching the biases: the
  sort alone takes longer than comparing with eight biases and counting;
- torch's threads inside each operation instead of a chunk for each thread: on a machine that
  others use, many times slower, since threads wait for each other after each small operation.
Comparing and counting are more than half of the time on one channel; there our transform is about
level with aeon's compiled loop, which needs less cache, and falls behind it when other programs
use the same cache. With more channels or timepoints it is ahead.
NumPy from 2.3 on copies rows shorter than a third of its buffer before it compares them, which is
four times slower; hence the small buffer in ``Tiles``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from tqdm import tqdm

from expclr.datasets import load_dataset
from expclr.encoders.minirocket import MiniRocket
from expclr.encoders.scaled import channel_statistics

HERE = Path(__file__).parent
NOISE = {"1 x 128": (2048, 1, 128), "2 x 2500": (256, 2, 2500), "64 x 128": (512, 64, 128)}
Transform = Callable[[NDArray[np.float32]], NDArray[np.float32]]


def har() -> tuple[Any, Any, NDArray[np.float32], NDArray[np.float32]]:
    """Training and test windows, and their channels standardised as an estimator does."""
    train, test = load_dataset("uci_har")
    mean, std = (s[:, None].astype(np.float32) for s in channel_statistics(train))
    return train, test, (train.X - mean) / std, (test.X - mean) / std


def ours(X: NDArray[np.float32], seed: int = 0) -> Transform:
    torch.manual_seed(seed)
    transform = MiniRocket(X.shape[1], X.shape[2])
    transform.fit(torch.from_numpy(X))
    return lambda X: transform(torch.from_numpy(X)).numpy()


def aeons(X: NDArray[np.float32], seed: int = 0) -> Transform:
    from aeon.transformations.collection.convolution_based import MiniRocket as Other

    other = Other(random_state=seed, n_jobs=torch.get_num_threads())
    other.fit(X)
    return other.transform


def clocked(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of wall and of CPU."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def speed(windows: int, repeats: int) -> dict[str, Any]:
    X = har()[2][:windows]
    results = {"uci_har, 9 x 128": _speed(X, repeats)}
    for name, shape in NOISE.items():
        noise = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        results[name] = _speed(noise, repeats)
    return results


def _speed(X: NDArray[np.float32], repeats: int) -> dict[str, float]:
    transforms = [ours(X[:256])] + ([aeons(X[:256])] if find_spec("aeon") else [])
    for transform in transforms:
        transform(X[:16])
    runs = [[clocked(lambda t=t: t(X)) for t in transforms] for _ in range(repeats)]
    median = np.median(runs, axis=0)
    result = {"windows": len(X), "windows_per_second": round(len(X) / median[0, 0])}
    result["windows_per_cpu_second"] = round(len(X) / median[0, 1])
    if len(transforms) == 2:
        ratios = np.array([[b / a for a, b in zip(*run, strict=True)] for run in runs])
        result["aeon_over_ours_wall"] = round(float(np.median(ratios[:, 0])), 2)
        result["aeon_over_ours_cpu"] = round(float(np.median(ratios[:, 1])), 2)
    return result


def multirocket(X: NDArray[np.float32], seed: int = 0) -> Transform:
    from aeon.transformations.collection.convolution_based import MultiRocket

    other = MultiRocket(random_state=seed, n_jobs=torch.get_num_threads()).fit(X)
    return lambda X: np.asarray(other.transform(X), dtype=np.float32)


def hydra(X: NDArray[np.float32], seed: int = 0) -> Transform:
    """Few windows at once: it holds all convolutions in memory."""
    from aeon.transformations.collection.convolution_based import HydraTransformer

    other = HydraTransformer(random_state=seed, n_jobs=torch.get_num_threads()).fit(X)
    return lambda X: np.concatenate(
        [other.transform(X[start : start + 256]).numpy() for start in range(0, len(X), 256)]
    )


def ridge(system: str) -> Any:
    """A classifier on the features of a system."""
    classifier = RidgeClassifierCV(alphas=np.logspace(-1, 5, 13))
    if system != "hydra":
        return make_pipeline(StandardScaler(), classifier)
    from aeon.classification.convolution_based._hydra import _SparseScaler

    tensors = FunctionTransformer(torch.from_numpy)
    return make_pipeline(tensors, _SparseScaler(), classifier)


SYSTEMS = {"ours": ours, "aeon": aeons, "multirocket": multirocket, "hydra": hydra}


def accuracy(system: str, shares: list[str], seeds: int) -> dict[str, Any]:
    train, test, X, X_test = har()
    start = time.perf_counter()
    transform = SYSTEMS[system](X)
    Z, Z_test = transform(X), transform(X_test)
    result: dict[str, Any] = {"features": Z.shape[1]}
    result["seconds_of_transform"] = round(time.perf_counter() - start, 1)
    scores: dict[str, list[float]] = {share: [] for share in shares}
    jobs = [(f, s) for f in scores for s in range(seeds if f != "1.0" else 1)]
    for fraction, seed in tqdm(jobs, system, disable=None):
        y = train.label_fraction(float(fraction), random_state=seed).y
        known = y >= 0
        model = ridge(system).fit(Z[known], y[known])
        scores[fraction].append(round(100 * model.score(Z_test, test.y), 2))
    return result | scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--what", choices=["speed", "accuracy"], default="speed")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--windows", type=int, default=10_299, help="of uci_har, for speed")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3, help="label subsets of each size")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "rocket.json")
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), default=list(SYSTEMS))
    parser.add_argument("--shares", nargs="+", default=["0.05", "0.2", "1.0"], help="of labels")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.what == "speed":
        keep(options, speed(options.windows, options.repeats))
        return
    for system in options.systems:
        if system == "ours" or find_spec("aeon"):
            keep(options, {system: accuracy(system, options.shares, options.seeds)})


def keep(options: argparse.Namespace, figures: dict[str, Any]) -> None:
    """Write figures beside those that are in the file, with the machine that made them."""
    done = json.loads(options.out.read_text()) if options.out.exists() else {}
    machine = {"cores": os.cpu_count(), "threads": options.threads, "torch": torch.__version__}
    machine |= {"python": platform.python_version(), "numpy": np.__version__}
    machine["load"] = round(os.getloadavg()[0], 1)
    command = f"python benchmarks/rocket.py --what {options.what} --threads {options.threads}"
    if options.what == "speed":
        command += f" --windows {options.windows} --repeats {options.repeats}"
    before = done.get(options.what, {}).get("results", {})
    results = before | {name: before.get(name, {}) | row for name, row in figures.items()}
    entry = {"command": command, "machine": machine, "results": results}
    text = json.dumps(done | {options.what: entry}, indent=1)
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
