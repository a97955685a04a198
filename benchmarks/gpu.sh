#!/usr/bin/env bash
# Everything that wants a GPU, in under eight minutes of an H200: tests, training, losses, embedding,
# probes, and the questions of `expclr bench`. A part that fails or takes too long costs no other.
#
#   OUT=results bash benchmarks/gpu.sh                     # then: python docs/speed_tables.py results
#   OUT=results PARTS="loss bench" bash benchmarks/gpu.sh  # some of it, beside what is there
#   OUT=/tmp/tiny TINY=1 DEVICE=cpu bash benchmarks/gpu.sh # only to see that all of it runs
#
# It needs Python with torch, numpy, scipy, scikit-learn, safetensors, tqdm and pytest; no install.
set -uo pipefail
cd "$(dirname "$0")/.."
: "${OUT:=benchmarks/results}" "${PARTS:=tests training loss embedding probes complexity bench}" "${PYTHON:=python3}" "${DEVICE:=cuda}" "${TINY:=}" "${MOST:=460}"
mkdir -p "$OUT"
export PYTHONPATH="$PWD/src:$PWD/benchmarks${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
export PYTHONDONTWRITEBYTECODE=1

part() { # name, most seconds, command; what it prints goes to gpu.log, or to the log in LOG
    local name=$1 most=$2 left=$((MOST - SECONDS)) began=$SECONDS status said
    shift 2
    [[ " $PARTS " == *" ${name%_gpu} "* ]] || return
    [ -z "${LOG:-}" ] || : >"$OUT/$LOG.log"
    said=$(mktemp)
    if [ "$left" -lt 10 ]; then echo "== $name: no time left" && return; fi
    timeout "$((left < most ? left : most))" "$@" >"$said" 2>&1
    status=$?
    # Folders of the machine are nobody's business.
    sed -E 's#(^|[ "=(])(/[^ /:]+)+/#\1#g' "$said" >>"$OUT/${LOG:-gpu}.log"
    tail -n "${TAIL:-8}" "$said"
    echo "== $name: $([ $status = 0 ] && echo done || echo "FAILED ($status)") in $((SECONDS - began)) s"
    rm -f "$said"
}

if [ -n "$TINY" ]; then
    training=(--windows 128 --counts 1 2 --methods simclr)
    loss=(--sizes 64 128 --dense 128 --blocks 12 --peers)
    embedding=(--windows 64 --mapped 64)
    probes=(--runs 3)
    growth=(--largest 256)
    bench="smoke=True"
else
    training=(--counts 1 8 16 64 --methods expclr_plus simclr supcon)
    loss=(--sizes 64 512 4096 16384 32768 --dense 4096 --blocks 22 23 24 --peers)
    loss+=(--tiles 128,64,32,8,4 128,128,32,8,3 64,64,32,4,4 128,64,64,8,3)
    embedding=(--windows 65536 --mapped 65536)
    probes=(--runs 30)
    growth=(--largest 16384)
    bench="seconds=3.0"
fi

"$PYTHON" -c 'import torch; print(torch.__version__, torch.cuda.is_available() and torch.cuda.get_device_name())'
LOG=tests_gpu TAIL=4 part tests_gpu 150 "$PYTHON" -m pytest tests/engine/test_gpu.py tests/encoders/test_tcn_kernels.py \
    tests/methods/test_streamed_kernels.py tests/test_fixed.py -v -rs --durations=5 \
    -p no:cacheprovider -o addopts= -W default
part training_gpu 240 "$PYTHON" benchmarks/training.py --device "$DEVICE" "${training[@]}" --out "$OUT/training_gpu.json"
part loss_gpu 60 "$PYTHON" benchmarks/loss.py --device "$DEVICE" "${loss[@]}" --out "$OUT/loss_gpu.json"
part embedding_gpu 30 "$PYTHON" benchmarks/embedding.py --device "$DEVICE" "${embedding[@]}" --out "$OUT/embedding_gpu.json"
part probes_gpu 60 "$PYTHON" benchmarks/evaluation_many.py --device "$DEVICE" "${probes[@]}" --out "$OUT/probes_gpu.json"
part complexity_gpu 40 "$PYTHON" benchmarks/complexity.py --device "$DEVICE" "${growth[@]}" --out "$OUT/complexity_gpu.json"
TAIL=16 part bench_gpu 90 "$PYTHON" -c "from expclr.experiments.bench import bench; print(bench('$DEVICE', '$OUT/bench_gpu.json', $bench))"
"$PYTHON" docs/speed_tables.py --show "$OUT"
echo "== all of it: $SECONDS s"
