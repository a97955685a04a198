#!/usr/bin/env bash
# Encoder and objective on a GPU, the most important first; what is finished is in $OUT at any time.
#
#   python -m expclr.experiments.export carry/npz mitdb uci_har hydraulic machine   # here, once
#   OUT=somewhere bash benchmarks/combination_gpu.sh 5                  # there: about 5 minutes
#   python benchmarks/combination.py --merge somewhere --page           # back here, before the next
#   OUT=/tmp/tiny bash benchmarks/combination_gpu.sh 9 --tiny --per-group 12 --device cpu --held /tmp
#
# It goes on from benchmarks/results. It needs Python with torch, NumPy, SciPy, scikit-learn, tqdm and
# safetensors; no install. Further arguments go to combination.py, after those given here.
set -u
cd "$(dirname "$0")/.."
minutes=${1:-5}
shift || true
: "${OUT:=benchmarks/results}" "${PYTHON:=python3}" "${WORKERS:=4}"
: "${DATASETS:=mitdb uci_har hydraulic machine}"
mkdir -p "$OUT"
export PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
"$PYTHON" benchmarks/combination.py $DATASETS --npz carry/npz --folds \
    --encoders "dilated tcn" hybrid rocket tcn --ways "RR features" "" "RR features, ECG views" \
    --seeds 5 --together 2 --workers "$WORKERS" --minutes "$minutes" --out "$OUT" "$@"
