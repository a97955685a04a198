"""Feature collections of other libraries: tsfresh, TSFEL and aeon's catch22."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.errors import ConfigError

__all__ = ["Adapter", "catch22", "tsfel", "tsfresh"]

Frame = Any  # a pandas DataFrame

CATCH22 = (
    "DN_HistogramMode_5",
    "DN_HistogramMode_10",
    "CO_f1ecac",
    "CO_FirstMin_ac",
    "CO_HistogramAMI_even_2_5",
    "CO_trev_1_num",
    "MD_hrv_classic_pnn40",
    "SB_BinaryStats_mean_longstretch1",
    "SB_TransitionMatrix_3ac_sumdiagcov",
    "PD_PeriodicityWang_th0_01",
    "CO_Embed2_Dist_tau_d_expfit_meandiff",
    "IN_AutoMutualInfoStats_40_gaussian_fmmi",
    "FC_LocalSimple_mean1_tauresrat",
    "DN_OutlierInclude_p_001_mdrmd",
    "DN_OutlierInclude_n_001_mdrmd",
    "SP_Summaries_welch_rect_area_5_1",
    "SB_BinaryStats_diff_longstretch0",
    "SB_MotifThree_quantile_hh",
    "SC_FluctAnal_2_rsrangefit_50_1_logi_prop_r1",
    "SC_FluctAnal_2_dfa_50_1_2_logi_prop_r1",
    "SP_Summaries_welch_rect_centroid",
    "FC_LocalSimple_mean3_stderr",
)


@dataclass(frozen=True)
class Adapter:
    """Another library's features of one channel, computed for each and named ch0_, ch1_, ...

    A channel that holds NaN or inf, and a feature that comes out infinite, is NaN.

    Parameters
    ----------
    library : str
        What is imported; its version is the extractor's.
    compute : callable
        From x (rows, t) and sfreq to a DataFrame with a row each.
    """

    library: str
    compute: Callable[[NDArray[np.float64], float], Frame]

    @property
    def version(self) -> str:
        self._import()
        return metadata.version(self.library)

    def __call__(self, X: NDArray[Any], sfreq: float) -> Frame:
        self._import()
        import pandas as pd

        return pd.concat(
            [
                self._channel(X[:, i].astype(np.float64), sfreq).add_prefix(f"ch{i}_")
                for i in range(X.shape[1])
            ],
            axis=1,
        )

    def _channel(self, x: NDArray[np.float64], sfreq: float) -> Frame:
        whole = np.asarray(np.isfinite(x).all(axis=1))
        with warnings.catch_warnings():  # about its own insides, once for each window
            warnings.simplefilter("ignore")
            frame = self.compute(np.where(whole[:, None], x, 0.0), sfreq)
        values = frame.reset_index(drop=True).astype(np.float64)
        values = values.replace([np.inf, -np.inf], np.nan)
        values.loc[~whole] = np.nan
        return values

    def _import(self) -> None:
        try:
            import_module(self.library)
        except ImportError as error:
            raise ConfigError(
                f'this extractor needs {self.library}: pip install "expclr[bench]" ({error})'
            ) from error


def _catch22(x: NDArray[np.float64], sfreq: float) -> Frame:
    import pandas as pd
    from aeon.transformations.collection.feature_based import Catch22

    return pd.DataFrame(Catch22().fit_transform(x[:, None]), columns=list(CATCH22))


def _tsfel(x: NDArray[np.float64], sfreq: float) -> Frame:
    import pandas as pd
    import tsfel

    config = tsfel.get_features_by_domain()
    frame = pd.concat(
        [tsfel.time_series_features_extractor(config, row, sfreq, verbose=0) for row in x]
    )
    return frame.rename(columns=lambda name: name.removeprefix("0_"))


def _tsfresh(x: NDArray[np.float64], sfreq: float) -> Frame:
    import pandas as pd
    from tsfresh.feature_extraction import EfficientFCParameters, extract_features

    rows, t = x.shape
    long = pd.DataFrame(
        {"window": np.repeat(np.arange(rows), t), "at": np.tile(np.arange(t), rows), "": x.ravel()}
    )
    frame = extract_features(
        long,
        column_id="window",
        column_sort="at",
        default_fc_parameters=EfficientFCParameters(),
        n_jobs=0,
        disable_progressbar=True,
    )
    return frame.rename(columns=lambda name: name.removeprefix("__"))


catch22 = Adapter("aeon", _catch22)
tsfel = Adapter("tsfel", _tsfel)
tsfresh = Adapter("tsfresh", _tsfresh)
