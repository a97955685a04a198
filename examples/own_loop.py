"""The loss alone, in a training loop and with a network of your own.

python examples/own_loop.py
"""

import torch
from torch import nn

from expclr import load_dataset
from expclr.features import FeatureSpace
from expclr.methods import ExpCLRLoss


def network(channels: int, width: int = 32, embedding_dim: int = 16) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv1d(channels, width, 15, stride=4, padding=7),
        nn.ReLU(),
        nn.Conv1d(width, width, 15, stride=4, padding=7),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(width, embedding_dim),
    )


def main(max_epochs: int = 20, batch_size: int = 64) -> float:
    torch.manual_seed(0)
    train, _ = load_dataset("machine")
    X = torch.from_numpy(train.X)
    F = torch.from_numpy(FeatureSpace().fit_transform(train.F))  # scaled; NaN stays NaN
    encoder, loss_of = network(X.shape[1]), ExpCLRLoss(tau=1.0)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=3e-3)
    for epoch in range(max_epochs):
        total = 0.0
        batches = torch.randperm(len(X)).split(batch_size)
        for batch in batches:
            loss = loss_of(encoder(X[batch]), F[batch])  # pairs are of windows in one batch
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}: loss {total / len(batches):.4f}")
    return total / len(batches)


if __name__ == "__main__":
    main()
