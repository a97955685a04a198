"""Commands that show, compare and measure as a whole."""

from __future__ import annotations


def demo(out: str = "expclr-demo", random_state: int = 0) -> None:
    """Simulate machines, learn from expert features, fine-tune on few labels, show it all.

    Args:
        out: Folder for report.html, metrics.json and the trained model.
        random_state: Seed of the data and of every training.
    """
    from expclr.experiments.demo import run_demo

    result = run_demo(out, random_state=random_state)
    print(result.table())
    print(f"\nReport: {result.report} (open it in a browser; it needs no network)")


def reproduce(
    experiments: str = "all",
    /,
    data: str = "uci_har",
    seeds: int = 5,
    budget: str | None = None,
    out: str = "results",
    npz: str | None = None,
    choices: str | None = None,
    device: str = "auto",
    systems: str = "",
    minutes: float | None = None,
    pack: str | None = None,
    *,
    smoke: bool = False,
    show_only: bool = False,
) -> None:
    """Rerun the paper's experiments, or those that are missing from the results folder.

    Args:
        experiments: table1, semi, ablation, tau, sensitivity, finetune, zoo, with commas between,
            or all.
        data: A dataset, or the paper's name of one (har, sleepedf, waveform).
        seeds: Runs that a mean is over.
        budget: Epochs and network sizes: cpu or gpu; default by the device.
        out: Results folder; what is finished there is not run again.
        npz: Folder of exported datasets instead of raw files.
        choices: Folder of hyper-parameters other than the package's own.
        device: "auto", "cpu", "cuda", "cuda:1", "mps".
        systems: Only these, with commas between.
        minutes: Begin nothing new after so many minutes.
        pack: Write all results into this one file, too.
        smoke: One tiny run of everything, on simulated machines.
        show_only: Show the plan and how long it will take; run nothing.
    """
    from expclr.experiments.reproduce import reproduce as run

    left = run(
        experiments,
        data=data,
        seeds=seeds,
        budget=budget,
        out=out,
        npz=npz,
        choices=choices,
        device=device,
        systems=[name for name in systems.split(",") if name],
        minutes=minutes,
        pack=pack,
        smoke=smoke,
        show_only=show_only,
    )
    print(f"{left} runs left" if left else f"all done: expclr report {out}")


def sweep(
    data: str = "uci_har",
    budget: str | None = None,
    seeds: int = 1,
    out: str = "tuning",
    npz: str | None = None,
    choices: str = "choices",
    systems: str = "",
    device: str = "auto",
    minutes: float | None = None,
) -> None:
    """Choose hyper-parameters on validation subjects, the same grid for every method.

    Args:
        data: A dataset.
        budget: Epochs and network sizes: cpu or gpu; default by the device.
        seeds: Runs that a score is the mean of.
        out: Folder of the trials; what is finished there is not run again.
        npz: Folder of exported datasets instead of raw files.
        choices: Folder for what was chosen, for reproduce --choices.
        systems: Only these, with commas between.
        device: "auto", "cpu", "cuda", "cuda:1", "mps".
        minutes: Begin nothing new after so many minutes.
    """
    from expclr.experiments.tuning import tune

    tune(
        data,
        budget=budget,
        seeds=seeds,
        out=out,
        npz=npz,
        choices=choices,
        systems=[name for name in systems.split(",") if name],
        device=device,
        minutes=minutes,
    )


def bench(
    device: str = "auto", out: str | None = None, seconds: float = 5.0, *, smoke: bool = False
) -> None:
    """Measure how fast this machine (a GPU, or one core) is, beside kept results.

    Args:
        device: "auto", "cpu", "cuda", "cuda:1", "mps".
        out: JSON file for the numbers.
        seconds: How long to go on with a question; all take two minutes with the default.
        smoke: One tiny round of everything, not to be compared.
    """
    from expclr.experiments.bench import bench as measure

    print(measure(device, out, seconds=seconds, smoke=smoke))


def doctor() -> None:
    """Print versions, devices, data folders, and which extras are missing."""
    from expclr.experiments.doctor import examine

    for name, value in examine().items():
        print(f"{name:>14}  {value}")
