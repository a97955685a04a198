"""Few labels: learn from expert features first, then from the labels there are.

python examples/few_labels.py
"""

import numpy as np

from expclr import ExpCLR, RepresentationLearner, load_dataset


def main(max_epochs: int = 40, finetune_epochs: int = 60, **settings) -> None:
    train, test = load_dataset("machine")
    few = train.label_fraction(0.05)  # the labels of all other windows are -1
    print(f"{(few.y >= 0).sum()} of {len(few)} windows have a label")

    learner = ExpCLR(max_epochs=max_epochs, finetune_epochs=finetune_epochs, **settings)
    learner.fit(few)  # windows bring their features along; labels are not looked at
    learner.finetune(few)
    with_features = (learner.predict(test) == test.y).mean()

    alone = RepresentationLearner("cross_entropy", max_epochs=finetune_epochs, **settings)
    without = (alone.fit(few.labelled()).predict(test) == test.y).mean()
    print(f"right on machines never seen: {with_features:.1%}; from labels alone: {without:.1%}")

    # The windows that the classifier is least sure of: label these next.
    unsure = np.argsort(learner.predict_proba(train).max(axis=1))[:5]
    print("label next:", unsure.tolist())


if __name__ == "__main__":
    main()
