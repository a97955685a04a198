"""Writes measured numbers into docs/speed.md, and its plots, from the files in benchmarks/results.

    python docs/speed_tables.py              # the page anew from the kept files
    python docs/speed_tables.py FOLDER       # keep what benchmarks/gpu.sh left there, then the page
    python docs/speed_tables.py --show FOLDER    # print its tables, keep nothing

A table stands between two comments, <!-- name --> and <!-- end of name -->.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "speed.md"
IMAGES = ROOT / "docs" / "images"
REFERENCES = ROOT / "src" / "expclr" / "experiments" / "bench_references.json"
ABSENT = "*Not measured yet.*"
LEFT_BY_GPU = ("training", "loss", "embedding", "probes", "complexity")


def main(words: list[str]) -> None:
    if words[:1] == ["--show"]:
        print(shown(Path(words[1])))
        return
    if words:
        keep(Path(words[0]))
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    draw()


def keep(folder: Path) -> None:
    """Take over what a GPU machine measured, and what ``expclr bench --out`` wrote."""
    for name in (*(f"{part}_gpu.json" for part in LEFT_BY_GPU), "tests_gpu.log"):
        if (folder / name).exists():
            shutil.copyfile(folder / name, KEPT / name)
    references = json.loads(REFERENCES.read_text(encoding="utf-8"))
    for kind, name in (("cuda", "bench_gpu.json"), ("cpu", "bench_cpu.json")):
        if (folder / name).exists():
            references[kind] = _read(folder, name)
    REFERENCES.write_text(json.dumps(references, indent=1) + "\n", encoding="utf-8")


def shown(folder: Path) -> str:
    """The tables of a folder of results that are there."""
    tables = {name: block(folder) for name, block in BLOCKS.items()}
    return "\n\n".join(f"{name}\n{text}" for name, text in tables.items() if text != ABSENT)


def filled(page: str) -> str:
    """The page with its numbers as the result files have them."""
    for name, block in BLOCKS.items():
        between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        text = block(KEPT)
        page = between.sub(lambda match, text=text: f"{match[1]}{text}\n{match[2]}", page)
    return page


def training_cpu(found: dict[str, Any]) -> str:
    rows = [
        [name, f"{row['cpu_ms']:.0f}", f"{row['ratio']:.2f}"] for name, row in found["ways"].items()
    ]
    return _table(["a step, one choice after the other", "ms", "quicker by"], rows)


def training_gpu(found: dict[str, Any]) -> str:
    rows = [
        [name, _number(row, "run_steps_per_second"), _number(row, "start_seconds"), _gb(row)]
        for name, row in found["ways"].items()
    ]
    return _table(["way", "run-steps a second", "seconds to start", "peak GB"], rows)


def losses(found: dict[str, Any]) -> str:
    sizes = list(dict.fromkeys(n for way in found["ways"].values() for n in way))
    rows = [
        [f"{int(n):,}", *(_ms_and_gb(way.get(n)) for way in found["ways"].values())] for n in sizes
    ]
    errors = found["gradient_errors"]
    rows.append([f"error at {errors['n']}", *(f"{errors[way]:.0e}" for way in found["ways"])])
    return _table(["rows", *(f"{way}: ms, GB" for way in found["ways"])], rows)


def blocks(found: dict[str, Any]) -> str:
    if len(found["blocks"]) < 2:
        return ABSENT
    n = found["blocks"]["n"]
    rows = [[f"2^{k}", _ms_and_gb(row)] for k, row in found["blocks"].items() if k != "n"]
    return _table(["pairs in a block", f"ms, GB of {n:,} rows"], rows)


def peers(found: dict[str, Any]) -> str:
    rows = [
        [name, n, _ms_and_gb(row["ours"]), _ms_and_gb(row["theirs"]), _ratio(row)]
        for name, sizes in found["peers"].items()
        for n, row in sizes.items()
    ]
    head = ["loss", "rows", "ours: ms, GB", "pytorch-metric-learning: ms, GB", "theirs / ours"]
    return _table(head, rows) if rows else ABSENT


def embedding(found: dict[str, Any]) -> str:
    rows = [
        [
            name,
            f"{row['windows_per_second']:,}",
            f"{row['limit_of_convolutions']:,}",
            f"{row['part_of_limit']:.0%}",
        ]
        for name, row in found["speed"].items()
    ]
    table = _table(["", "windows a second", "limit of the convolutions", "of the limit"], rows)
    memory = found["memory"]
    return (
        f"{table}\n\nA window takes {found['mega_operations_per_window']} million operations. "
        f"Embeddings in bfloat16 differ by {found['error_of_bfloat16']:.1%}. While a memory-mapped "
        f"file of {memory['windows']:,} windows ({memory['file_gb']:.3f} GB) was embedded, the "
        f"process's own memory grew by {memory['grown_gb']:.3f} GB."
    )


def complexity(found: dict[str, Any]) -> str:
    rows = [
        [
            name,
            growth["over"],
            f"{growth['points'][0][growth['over']]}-{growth['points'][-1][growth['over']]}",
            _slope(growth["slope_of_time"]),
            _slope(growth["slope_of_memory"]),
        ]
        for name, growth in found["growths"].items()
    ]
    return _table(["", "over", "from-to", "slope of time", "slope of memory"], rows)


def uci_har(found: dict[str, Any]) -> str:
    rows = [
        [
            f"{trial['settings']['method']}, {trial['settings']['encoder']}",
            trial["epochs"],
            trial["settings"]["lr"] or "its own",
            trial["settings"]["lr_decay"],
            trial["settings"]["batches"],
            trial["settings"]["random_state"],
            f"{trial['linear_accuracy']:.1%}",
            f"{trial['train_cpu_seconds']:.0f}",
        ]
        for trial in found["trials"]
    ]
    head = [
        "system",
        "epochs",
        "lr",
        "decay",
        "batches",
        "seed",
        "linear probe",
        "seconds of a core",
    ]
    return _table(head, rows)


def probes(found: dict[str, Any]) -> str:
    row = [
        found["runs"],
        f"{found['seconds_together']:.2f}",
        f"{found['seconds_one_by_one']:.1f}",
        f"{found['ratio']:.0f}",
        f"{found['largest_difference_in_accuracy']:.1e}",
    ]
    head = ["runs", "s side by side", "s one by one", "ratio", "largest difference in accuracy"]
    return _table(head, [row])


def rocket(found: dict[str, Any]) -> str:
    rows = [
        [name, f"{row['windows_per_cpu_second']:,}", f"{row['aeon_over_ours_cpu']:.2f}"]
        for name, row in found["speed"]["results"].items()
    ]
    return _table(
        ["channels x timepoints", "windows a second of a core", "aeon's time / ours"], rows
    )


def rocket_accuracy(found: dict[str, Any]) -> str:
    rows = []
    for name, row in found["accuracy"]["results"].items():
        scores = [row.get(share) for share in ("0.05", "0.2", "1.0")]
        means = [f"{sum(of) / len(of):.1f}%" if of else "–" for of in scores]
        rows.append([name, f"{row['features']:,}", *means])
    return _table(["transform, then ridge", "features", "5% of labels", "20%", "100%"], rows)


def machine(found: dict[str, Any]) -> str:
    told = found["machine"]
    return (
        f"{told['device']}, {told['cores']} cores, {told['threads']} threads in use, Python "
        f"{told['python']}, torch {told['torch']}, load {told['load']}: "
        f"`{told['command']}`."
    )


def reference(kind: str) -> str:
    """What ``expclr bench`` compares with."""
    found = json.loads(REFERENCES.read_text(encoding="utf-8")).get(kind)
    if found is None:
        return ABSENT
    told = found["machine"]
    rows = [[name, f"{row['a_second']:,} {row['unit']}"] for name, row in found["rows"].items()]
    about = f"{told['device']}, {told['cores']} cores, {told['threads']} threads"
    return _table([f"{about}, torch {told['torch']}", "a second"], rows)


def _of(name: str, table: Callable[[dict[str, Any]], str]) -> Callable[[Path], str]:
    """A block that is written from one file, once there is one."""

    def block(folder: Path) -> str:
        return table(_read(folder, name)) if (folder / name).exists() else ABSENT

    return block


BLOCKS: dict[str, Callable[[Path], str]] = {
    "training on a cpu": _of("training_cpu.json", training_cpu),
    "machine of training on a cpu": _of("training_cpu.json", machine),
    "training on a gpu": _of("training_gpu.json", training_gpu),
    "machine of training on a gpu": _of("training_gpu.json", machine),
    "loss on a cpu": _of("loss_cpu.json", losses),
    "blocks on a cpu": _of("loss_cpu.json", blocks),
    "machine of loss on a cpu": _of("loss_cpu.json", machine),
    "loss on a gpu": _of("loss_gpu.json", losses),
    "blocks on a gpu": _of("loss_gpu.json", blocks),
    "machine of loss on a gpu": _of("loss_gpu.json", machine),
    "peers": _of("loss_cpu.json", peers),
    "embedding on a cpu": _of("embedding_cpu.json", embedding),
    "machine of embedding on a cpu": _of("embedding_cpu.json", machine),
    "embedding on a gpu": _of("embedding_gpu.json", embedding),
    "growth on a cpu": _of("complexity_cpu.json", complexity),
    "machine of growth on a cpu": _of("complexity_cpu.json", machine),
    "growth on a gpu": _of("complexity_gpu.json", complexity),
    "uci_har, held-out subjects": _of("uci_har_choices.json", uci_har),
    "uci_har, test": _of("uci_har_cpu.json", uci_har),
    "probes on a gpu": _of("probes_gpu.json", probes),
    "random convolutions": _of("rocket.json", rocket),
    "accuracy of random convolutions": _of("rocket.json", rocket_accuracy),
    "bench on a cpu": lambda _: reference("cpu"),
    "bench on a gpu": lambda _: reference("cuda"),
}


def draw() -> None:
    """The plots: the loss over n, and what grows with what."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "speed", "svg.fonttype": "none", "font.size": 9})
    for device in ("cpu", "gpu"):
        if (KEPT / f"loss_{device}.json").exists():
            ways = _read(KEPT, f"loss_{device}.json")["ways"]
            _plot(f"speed-loss-{device}.svg", "rows", _lines(ways))
        if (KEPT / f"complexity_{device}.json").exists():
            found = _read(KEPT, f"complexity_{device}.json")["growths"]
            _plot(f"speed-growth-{device}.svg", "size", _growth_lines(found))


Lines = dict[str, tuple[list[int], list[float], list[float]]]  # sizes, ms, MB


def _lines(ways: dict[str, Any]) -> Lines:
    return {
        name: (
            [int(n) for n, row in sizes.items() if "ms" in row],
            [row["ms"] for row in sizes.values() if "ms" in row],
            [1e3 * row["peak_gb"] for row in sizes.values() if "ms" in row],
        )
        for name, sizes in ways.items()
    }


def _growth_lines(found: dict[str, Any]) -> Lines:
    return {
        f"{name} ({growth['over']})": (
            [point[growth["over"]] for point in growth["points"]],
            [point["ms"] for point in growth["points"]],
            [point["peak_mb"] for point in growth["points"]],
        )
        for name, growth in found.items()
    }


def _plot(file: str, over: str, lines: Lines) -> None:
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for name, (sizes, ms, mb) in lines.items():
        axes[0].loglog(sizes, ms, marker="o", markersize=3, label=name)
        axes[1].loglog(sizes, mb, marker="o", markersize=3, label=name)
    for axis, quantity in zip(axes, ("milliseconds", "megabytes"), strict=True):
        axis.set(xlabel=over, ylabel=quantity)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=7)
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / file, metadata={"Date": None})
    plt.close(figure)


def _read(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    return found


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def _ms_and_gb(row: dict[str, Any] | None) -> str:
    if row is None:
        return "-"
    if "failed" in row:
        return "out of memory" if "memory" in row["failed"] else "failed"
    return f"{row['ms']:,.1f}, {_gb(row)}"


def _gb(row: dict[str, Any]) -> str:
    return "-" if row.get("peak_gb") is None else f"{row['peak_gb']:.2g}"


def _number(row: dict[str, Any], name: str) -> str:
    return f"{row[name]:,}" if name in row else "failed"


def _ratio(row: dict[str, Any]) -> str:
    return f"{row['theirs_over_ours']:,}" if "theirs_over_ours" in row else "-"


def _slope(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    main(sys.argv[1:])
