"""Your own arrays in, embeddings and a saved model out.

    python examples/own_data.py my_windows.npz

The file is written by numpy.savez and holds X (n, channels, timepoints), F (n, features) with NaN
where nothing was measured, and group (n,): which subject or machine a window is of.
"""

import sys
from pathlib import Path

import numpy as np

from expclr import ExpCLR, Windows
from expclr.evaluation import bilipschitz


def main(data: str, out: str = "my_model", **settings) -> None:
    windows = Windows.from_npz(data)
    print(windows)
    # Windows of one subject are alike: what is measured must be measured on other subjects.
    train, test = windows.split_by_group(0.3)

    learner = ExpCLR(**settings).fit(train)
    learner.save(out)
    np.save(Path(out).with_suffix(".npy"), learner.transform(test))

    wanted = learner.feature_space_.transform(test.F)
    pairs = bilipschitz(learner.transform(test), wanted)
    low, high = np.quantile(pairs.ratios, [0.05, 0.95])
    print(f"feature distance / embedding distance: {low:.2f} to {high:.2f} for 90 % of pairs")


if __name__ == "__main__":
    main(sys.argv[1])
