#!/usr/bin/env bash
# Everything to learn from a GPU, in ten minutes on an H100 with 16 cores: FALCO at its published size, the contract
# tests and the rehearsals. Prints one table and writes it into benchmarks/gpu.md.
#
#   benchmarks/gpu.sh                  after `make environment`, or with a Python that has the packages of requirements.lock
#   MINUTES=30 benchmarks/gpu.sh       more time: the rehearsals get most of it
#
# What is not done in time is cut off, and the table says so.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
end=$((SECONDS + ${MINUTES:-10} * 60 - 40)) # 40 seconds to end what is cut off, and for the table
[ -x .venv/bin/python ] && export PATH="$PWD/.venv/bin:$PATH"
export PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}"
cores=$(nproc)
out=$(mktemp -d)
trap 'kill $(jobs -p) 2> /dev/null; rm -rf "$out"' EXIT
left() { echo $((end - SECONDS > 1 ? end - SECONDS : 1)); }

python -c "import torch; assert torch.cuda.is_available()" || {
    echo "torch finds no GPU here: \`masquerade doctor\` says why." >&2
    [ "${WITHOUT_GPU:-}" ] || exit 1 # with it, the processor is measured, and no page is written
}

# Alone on the card, because these are times.
[ "${FALCO:-1}" = 0 ] || timeout -k 10 240 python benchmarks/gpu.py falco "$out" || echo "FALCO was cut off or failed." >&2

# Side by side: these only pass or fail.
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
mkdir -p "$out/rehearsal"
CORES=$((cores > 3 ? cores * 5 / 8 : 2)) timeout -k 10 "$(left)" python -m pytest tests/rehearsal -p no:cacheprovider \
    --basetemp="$out/rehearsal" > "$out/rehearsal.log" 2>&1 &
rehearsals=$!
timeout -k 10 "$(left)" python -m pytest ${TESTS:-tests/contract/test_methods.py tests/contract/test_trainings.py \
    tests/contract/test_attackers.py} -vv -n $((cores > 3 ? cores * 3 / 8 : 1)) -p no:cacheprovider > "$out/contract.log" 2>&1
[ "${REHEARSALS:-1}" = 0 ] && kill "$rehearsals"
wait "$rehearsals"
python benchmarks/gpu.py write "$out"
