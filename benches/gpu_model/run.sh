#!/usr/bin/env bash
# Makes estimates.txt and estimates.csv anew (see README.md), which takes about five minutes.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
scratch=${1:-$(mktemp -d)}
mkdir -p "$scratch"
g++ -O2 -std=c++17 -o "$scratch/steps" steps.cpp

# All sets of a small board: the counts are those of the published sequence.
for pair in 10:724 12:14200 13:73712; do
  found=$(python3 sample_sets.py "${pair%:*}" 0 | "$scratch/steps" check | tail -n 1)
  if [[ $found != "placements,${pair#*:}" ]]; then
    echo "n = ${pair%:*}: $found, not ${pair#*:}" >&2
    exit 1
  fi
done

# The capacity of a workgroup in the program, and one that holds every set of n = 22.
for capacity in 655360 1048576; do
  mkdir -p "$scratch/counts/$capacity"
  # A board, sampled sets of each family, and the share of their last lists that is counted.
  while read -r n sets share; do
    python3 sample_sets.py "$n" "$sets" | "$scratch/steps" "$share" "$capacity" >"$scratch/counts/$capacity/$n.csv"
  done <<<"18 150 1.0
20 60 1.0
22 50 0.1
24 12 0.004"
done
python3 estimate.py "$scratch/counts" "$scratch/out" estimates.csv >estimates.txt
