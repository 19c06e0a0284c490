#!/usr/bin/env bash
# Builds leaf.cu for a machine with a CUDA driver, with stored lists, into a folder; needs nvcc, a C++
# compiler and Python. CALLS says which lists: a board, sets, and the share of their last lists.
set -euo pipefail

out=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"
read -ra calls <<<"${CALLS:-22 8 0.01}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The library beside nvcc, where it comes from the packages of requirements.txt.
libraries=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")/lib
nvcc -O3 -std=c++17 -Wno-deprecated-gpu-targets "-L$libraries" --cudart static \
  -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 \
  -gencode arch=compute_120,code=sm_120 -gencode arch=compute_80,code=compute_80 \
  -o "$out/leaf" leaf.cu
g++ -O2 -std=c++17 -o "$scratch/steps" ../steps.cpp
python3 ../sample_sets.py "${calls[0]}" "${calls[1]}" \
  | "$scratch/steps" "${calls[2]}" 1048576 "dump=$out/calls.bin" >/dev/null
ls -l "$out/leaf" "$out/calls.bin"
