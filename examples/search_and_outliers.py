"""Find similar windows, and windows unlike anything normal.

python examples/search_and_outliers.py
"""

import numpy as np

from expclr import ExpCLR, load_dataset
from expclr.evaluation import NeighbourIndex, outlier_scores


def main(**settings) -> None:
    train, test = load_dataset("machine")
    learner = ExpCLR(**settings).fit(train)
    Z, Z_test = learner.transform(train), learner.transform(test)
    names = np.array(train.class_names)

    index = NeighbourIndex(Z, ids=[f"{g} {i}" for i, g in enumerate(train.group)])
    found = index.search(Z_test[:3], k=4)
    for i in range(3):
        print(f"window {i} of {test.group[i]} ({names[test.y[i]]}) is like")
        for window, row in zip(found.ids[i], found.index[i], strict=True):
            print(f"    {window} ({names[train.y[row]]})")

    # Only healthy windows are known; whole machines are held out to calibrate.
    healthy = train.y == 0
    outliers = outlier_scores(Z[healthy], Z_test, group=train.group[healthy])
    flagged = outliers.flagged(false_discovery_rate=0.1)
    print(f"{flagged.sum()} of {len(test)} windows are unlike healthy ones;")
    faulty = np.flatnonzero(flagged & (test.y > 0))
    print(f"{len(faulty)} of those have a fault")
    print("strangest:", np.argsort(-outliers.scores)[:5].tolist())


if __name__ == "__main__":
    main()
