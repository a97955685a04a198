"""The experiments as data: what is compared, and that nothing runs twice."""

from dataclasses import replace

import pytest

from expclr.errors import ConfigError
from expclr.experiments.budgets import BUDGETS
from expclr.experiments.choices import Choices, read_choices, write_choices
from expclr.experiments.paper import EXPERIMENTS, FRACTIONS, SYSTEMS, Run, foreign, runs_of
from expclr.experiments.plan import Pace, calibrate, estimate, waves
from expclr.experiments.protocol import Encoder, data_of, labelled_share, make_job
from expclr.experiments.study_data import open_study
from expclr.methods import METHODS


@pytest.fixture(scope="module")
def study():
    return open_study("machine", per_group=6)


def job_of(study, run, budget="smoke", choices=None, code="1"):
    return make_job(run, study, BUDGETS[budget], choices or Choices(study.name), code)


def test_every_method_is_compared_without_labels_or_on_labels():
    methods = {SYSTEMS[run.system].method for run in runs_of(["all"], "d", 1)}
    assert set(METHODS) - {"supcon"} <= methods  # supcon goes on with labels after SimCLR


def test_all_is_every_experiment_and_each_run_once():
    together = runs_of(["all"], "d", 2)
    assert len(together) == len(set(together))
    assert set(together) == {r for name in EXPERIMENTS for r in runs_of([name], "d", 2)}


def test_semi_supervised_rows_cover_the_papers_fractions():
    shares = {r.labels for r in runs_of(["semi"], "d", 1) if (r.system, r.mode) == ("expclr", "SS")}
    assert shares == set(FRACTIONS)


def test_unknown_names_are_refused():
    with pytest.raises(ConfigError, match="table1"):
        runs_of(["tabel1"], "d", 1)
    with pytest.raises(ConfigError, match="seeds"):
        runs_of(["table1"], "d", 0)


def test_without_labels_none_are_shown_and_with_labels_no_features(study):
    unsupervised = data_of(job_of(study, Run("machine", "expclr", "U", 0)), study)
    assert unsupervised.y is None
    assert unsupervised.F is not None
    supervised = data_of(job_of(study, Run("machine", "expclr", "S", 0, 0.2)), study)
    assert supervised.F is None
    assert (supervised.y >= 0).all()
    assert len(supervised) < len(study.train)


def test_every_system_sees_the_same_nested_labels(study):
    def seen(system, share):
        run = Run("machine", system, "SS", 3, share)
        return set((labelled_share(study.train, run).y >= 0).nonzero()[0].tolist())

    assert seen("expclr", 0.1) == seen("simclr", 0.1)
    assert seen("expclr", 0.1) < seen("expclr", 0.5)


def test_fine_tuning_goes_on_from_the_run_without_labels(study):
    job = job_of(study, Run("machine", "expclr", "SS", 1, 0.2, finetune="supcon"))
    assert job.needs.key == job_of(study, Run("machine", "expclr", "U", 1)).key
    assert job.method == "supcon"
    assert job.config.lr == job.needs.config.lr


def test_few_labels_do_not_mean_few_steps(study):
    few = job_of(study, Run("machine", "cross_entropy", "S", 0, 0.05), "gpu")
    assert few.steps >= BUDGETS["gpu"].least_steps


def test_a_result_is_named_by_settings_data_split_and_code(study):
    run = Run("machine", "expclr", "U", 0)
    other_data = open_study("machine", per_group=5)
    keys = {
        job_of(study, run).key,
        job_of(study, run, code="2").key,
        job_of(study, run, "gpu").key,
        job_of(other_data, run).key,
        job_of(study, Run("machine", "expclr", "U", 1)).key,
        job_of(study, Run("machine", "expclr", "U", 0, part="validation")).key,
        job_of(study, Run("machine", "expclr", "U", 0, variant=(("method.tau", 2.0),))).key,
    }
    assert len(keys) == 7
    assert job_of(study, run).key in keys


def test_ts_tcc_is_read_from_its_flattened_map(study):
    job = job_of(study, Run("machine", "tstcc", "U", 0))
    assert job.config.embedding_dim == 128 * 66  # 512 timepoints, halved three times
    assert job.config.batch_size == 128


def test_choices_are_kept_with_their_scores(tmp_path, study):
    made = {"expclr": {"U": {"lr": 5e-4, "epochs": 7, "params": {"tau": 0.5}, "score": 0.9}}}
    write_choices(Choices("machine", made, {"rule": "best"}), tmp_path)
    choices = read_choices("machine", "gpu", tmp_path)
    job = job_of(study, Run("machine", "expclr", "U", 0), "gpu", choices)
    assert (job.config.lr, job.config.max_epochs, job.config.method_params["tau"]) == (5e-4, 7, 0.5)
    assert "validation" in job.chosen_by
    plain = job_of(study, Run("machine", "simclr", "U", 0), "gpu", choices)
    assert plain.chosen_by == "no choice was made"


def test_a_method_of_ones_own_is_compared_by_its_name(study):
    name = "expclr.methods.rkd:RKDLoss"
    runs = [run for run in runs_of(["tau"], "machine", 2, also=[name]) if run.system == name]
    assert [(run.mode, run.seed) for run in runs] == [("U", 0), ("U", 1)]
    assert job_of(study, runs[0]).config.method == name
    with pytest.raises(ConfigError, match="cannot import"):
        foreign(["nowhere:Loss"])


def test_what_one_budget_chose_is_not_used_with_another(tmp_path):
    made = {"expclr": {"U": {"lr": 5e-4, "epochs": 7, "params": {}, "score": 0.9}}}
    write_choices(Choices("machine", made, {}, "cpu"), tmp_path)
    assert read_choices("machine", "cpu", tmp_path).systems
    assert not read_choices("machine", "gpu", tmp_path).systems


def test_a_budget_may_make_a_method_smaller_and_says_so(study):
    job = job_of(study, Run("machine", "treba", "U", 0), "cpu")
    assert job.config.method_params == {"hidden": 16}
    assert job_of(study, Run("machine", "treba", "U", 0), "gpu").config.method_params == {}
    assert "TCN with width 32, blocks 6, finest 64; treba with hidden 16" in BUDGETS["cpu"].words()
    assert BUDGETS["gpu"].words().endswith("; the full TCN")


def test_the_papers_learning_rates_hold_where_nothing_was_chosen():
    found, why = Choices("uci_har").of("simclr", "SS", epochs=3)
    assert (found["lr"], why) == (5e-4, "the paper's learning rate")
    assert Choices("mitdb").of("kim2021", "U", epochs=3)[0]["lr"] == 7e-3


def test_broken_choices_are_named(tmp_path):
    (tmp_path / "machine-gpu.yaml").write_text("systems: [")
    with pytest.raises(ConfigError, match=r"machine-gpu\.yaml"):
        read_choices("machine", "gpu", tmp_path)


def test_waves_hold_one_shape_and_bases_come_first(study):
    jobs = [job_of(study, run) for run in runs_of(["semi"], "machine", 2)]
    jobs += [job.needs for job in jobs if job.needs]
    made = waves({job.key: job for job in jobs}.values())
    assert all(len({job.shape for job in wave.jobs}) == 1 for wave in made)
    assert [wave.stage for wave in made] == sorted(wave.stage for wave in made)
    seeds = [w for w in made if w.jobs[0].method == "expclr" and w.stage == 1 and len(w.jobs) > 1]
    assert seeds


def test_the_estimate_counts_what_a_method_and_a_ridge_regression_cost(study):
    pace = Pace(0.01, 0.0, 0.0, 1, {("treba", "tcn"): 20.0}, ridge=1e-9)
    plain, dear = (
        estimate(job_of(study, Run("machine", name, "U", 0), "cpu"), pace, 0)
        for name in ("expclr", "treba")
    )
    assert dear > 10 * plain
    rocket = job_of(study, Run("machine", "rocket", "-", 0))
    assert estimate(rocket, pace, 0) == pytest.approx(1e-9 * rocket.n**3, abs=0.1)


def untimed(config, few, count):
    return 0.01, Encoder.from_config(replace(config, max_epochs=1)).fit(few)


def test_the_calibration_times_every_method_of_the_plan(study, monkeypatch):
    monkeypatch.setattr("expclr.experiments.plan._step_seconds", untimed)
    jobs = [job_of(study, Run("machine", name, "U", 0)) for name in ("expclr", "simclr", "tstcc")]
    jobs.append(job_of(study, Run("machine", "simclr", "SS", 0, 0.5)))
    pace = calibrate(study, jobs, device="cpu", processes=0)
    methods = {("expclr", "tcn"), ("simclr", "tcn"), ("tstcc", "tstcc"), ("supcon", "tcn")}
    assert set(pace.relative) == methods
    assert all(value > 0 for value in pace.relative.values())


@pytest.mark.parametrize("wide", [1000, 2])
def test_many_runs_probed_at_once_have_the_numbers_of_one_after_the_other(study, wide, monkeypatch):
    import numpy as np

    monkeypatch.setattr("expclr.experiments.protocol.WIDE", wide)

    from expclr.experiments.protocol import PROBED, probe_all, probe_together

    rng = np.random.default_rng(0)
    y, y_test = study.train.y, study.test.y
    Z = [y[:, None] + rng.normal(size=(len(y), 3)).astype(np.float32) for _ in range(3)]
    asked = [y_test[:, None] + rng.normal(size=(len(y_test), 3)).astype(np.float32)] * 3
    seen = [study.train.label_fraction(f, random_state=1).y for f in (0.5, 0.7, 1.0)]
    together = probe_together(Z, asked, y, seen, y_test, device="cpu")
    for i, found in enumerate(together):
        alone = probe_all(Z[i], asked[i], y, seen[i], y_test)["metrics"]
        assert found["metrics"] == alone
        assert ("all" in alone) == (i < 2 and wide == 1000)
        assert set(alone["subset"]) == set(PROBED if wide == 1000 else ("linear", "knn1_raw"))
