#!/usr/bin/env bash
# One slice of the study on a GPU: chooses hyper-parameters, reruns the paper on uci_har and mitdb,
# packs what is finished into $OUT. The same command goes on where the last slice stopped:
#
#   python -m expclr.experiments.export carry/npz uci_har mitdb     # here, once
#   OUT=somewhere bash experiments/gpu.sh 6                         # there: about 6 minutes
#   cp somewhere/*.jsonl experiments/results/                       # back here, before the next one
#
# Needs torch, NumPy, SciPy, scikit-learn, tqdm, safetensors and PyYAML; what the machine lacks of
# pure Python may lie in carry/site. Further arguments go to expclr.experiments.slices.
set -u
cd "$(dirname "$0")/.."
minutes=${1:-6}
shift || true
export PYTHONPATH=src:carry/site PYTHONUNBUFFERED=1
slices() { "${PYTHON:-python3}" -m expclr.experiments.slices --out "${OUT:-runs/packed}" "$@"; }
# A wave that takes far too long is given up, what was finished before it is packed all the same.
limit=$(awk "BEGIN { print int(60 * $minutes + 150) }")
export -f slices
set -- --npz carry/npz --held experiments/results --minutes "$minutes" "$@"
timeout -s INT "$limit" bash -c 'slices "$@"' slices "$@"
code=$?
[ "$code" = 0 ] || [ "$code" = 3 ] || slices "$@" --pack-only
exit "$code"
