#!/usr/bin/env bash
# Checks and measures a GPU, on a machine that has one and does not need cargo.
#
# The binaries of `build` need x86-64 Linux, libgcc_s, and a glibc at least as new as the one that `build`
# prints (they are linked to it dynamically, so build on the older system of the two). They load the
# Vulkan loader (libvulkan.so.1) and the GPU's driver when they run. If the driver's manifest is in an
# unusual place, set VK_DRIVER_FILES to its path.
set -euo pipefail

usage() {
  cat <<'END'
benches/gpu.sh build DIR    builds nqueens, the GPU bench and the shader tests, stripped, into DIR (needs cargo)
benches/gpu.sh run DIR OUT  runs the programs in DIR on this machine's GPU and writes logs to OUT (needs a Vulkan driver and loader)

A run takes less than 8 minutes and ends with a summary; it fails if a check fails. BENCH_ARGUMENTS are passed to the
bench, for example BENCH_ARGUMENTS='--sizes 12,13 --seconds 60'.
END
}

# The time limit of a whole run, in seconds.
readonly budget=465

# Prints the path of the executable of kind $1 that cargo builds with the other arguments.
executable() {
  local kind=$1
  shift
  cargo "$@" --locked --message-format=json-render-diagnostics \
    | grep -F "\"kind\":[\"$kind\"]" | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1
}

build() {
  local dir=$1 name from
  mkdir -p "$dir"
  dir=$(cd "$dir" && pwd)
  cd "$(dirname "${BASH_SOURCE[0]}")/.."
  for name in nqueens shaders bench; do
    case $name in
      nqueens) from=$(executable bin build --release --bin nqueens) ;;
      shaders) from=$(executable test test --release --no-run --test counting) ;;
      bench) from=$(executable bench bench --no-run --bench gpu) ;;
    esac
    cp "$from" "$dir/$name"
    strip "$dir/$name" || echo "not stripped: $dir/$name" >&2
  done
  git describe --always --dirty >"$dir/commit" 2>/dev/null || echo unknown >"$dir/commit"
  (cd "$dir" && ls -l nqueens shaders bench)
  echo "together: $(cat "$dir"/{nqueens,shaders,bench} | wc -c) bytes"
  echo "needed: $(cat "$dir"/{nqueens,shaders,bench} | grep -aoE 'GLIBC_2\.[0-9]+' | sort -uV | tail -n 1) or later"
}

# Whether a step has failed, and the result of each step.
failed=0
summary=""

# Runs a step, given its name, its time limit in seconds and its command. The log has the command, its
# output and its exit status.
step() {
  local name=$1 most=$2 code=0
  shift 2
  local log="$out/$name.log" left=$((budget - SECONDS)) began=$SECONDS
  if ((most > left)); then most=$left; fi
  if ((most < 1)); then
    failed=1
    summary+="$name: NOT RUN: no time is left"$'\n'
    return
  fi
  echo "\$ $*" | tee "$log"
  timeout --kill-after=5 "$most" "$@" 2>&1 | tee -a "$log" || code=$?
  echo "exit status $code" >>"$log"
  if ((code == 0)); then
    summary+="$name: passed, $((SECONDS - began)) s"$'\n'
  else
    failed=1
    # The exit status 124 means that the time limit was reached.
    summary+="$name: FAILED, exit status $code, $((SECONDS - began)) s of $most s"$'\n'
  fi
}

run() {
  local dir arguments
  dir=$(cd "$1" && pwd)
  mkdir -p "$2"
  out=$(cd "$2" && pwd)
  read -ra arguments <<<"${BENCH_ARGUMENTS:-}"
  # With the first variable the tests and the bench fail if they find no adapter; the second suppresses a
  # warning of Mesa's device-select layer.
  export NQUEENS_EXPECT_ADAPTER=1 NODEVICE_SELECT=1
  {
    echo "commit $(cat "$dir/commit")"
    date -u
    uname -srm
    grep -m 1 'model name' /proc/cpuinfo || true
    ldd --version 2>&1 | sed -n 1p
    nvidia-smi 2>/dev/null || true
  } | tee "$out/machine.log"
  step devices 60 "$dir/nqueens" devices
  step selftest 100 "$dir/nqueens" selftest --long --device gpu
  step shaders 120 "$dir/shaders" shaders_agree_with_the_oracle
  # The rest of the time, less what the bench may need after its budget.
  local left=$((budget - SECONDS - 15))
  if ((left > 420)); then left=420; fi
  if ((left < 1)); then left=1; fi
  step bench $((left + 15)) "$dir/bench" --seconds "$left" "${arguments[@]}"
  printf '\n%s%d s in total\n' "$summary" "$SECONDS" | tee "$out/summary.log"
  exit "$failed"
}

case "${1:-} $#" in
  "build 2") build "$2" ;;
  "run 3") run "$2" "$3" ;;
  " 0") usage ;;
  *)
    usage >&2
    exit 2
    ;;
esac
