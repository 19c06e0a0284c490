#!/usr/bin/env bash
# Checks and measures a GPU, on a machine that has one and does not need cargo.
#
# The binaries of `build` need x86-64 Linux, libgcc_s, and a glibc at least as new as the one that `build`
# prints (they are linked to it dynamically, so build on the older system of the two). They load the
# Vulkan loader (libvulkan.so.1) and the GPU's driver when they run. A machine without a loader can be
# brought one: put libvulkan.so.1, or the Debian package libvulkan1_*.deb, into DIR. If the driver's
# manifest is in an unusual place, set VK_DRIVER_FILES to its path.
set -euo pipefail

usage() {
  cat <<'END'
benches/gpu.sh build DIR    builds nqueens, the GPU bench and the shader tests, stripped and compressed, into DIR
                            (needs cargo; with nvcc, also the CUDA port of the leaf kernel)
benches/gpu.sh run DIR OUT  runs the programs in DIR on this machine's GPU and writes logs to OUT (needs a Vulkan driver and loader)

A run takes less than 8 minutes and ends with a summary, which compares times with estimates; it fails if a check
fails, or if there is no adapter. BENCH_ARGUMENTS are passed to the bench, for example
BENCH_ARGUMENTS='--sizes 12,13 --seconds 60'; COUNT_SIZES are the boards that are compared with estimates ('20 22').
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
  cp benches/gpu_model/estimates.csv "$dir/"
  echo "needed: $(cat "$dir"/{nqueens,shaders,bench} | grep -aoE 'GLIBC_2\.[0-9]+' | sort -uV | tail -n 1) or later"
  gzip --force "$dir"/{nqueens,shaders,bench}
  if command -v nvcc >/dev/null; then
    benches/gpu_model/cuda/build.sh "$dir" || echo "no CUDA port: it was not built" >&2
  fi
  (cd "$dir" && ls -l)
}

# Puts the executables, which may be compressed, into the folder $2.
unpack() {
  local dir=$1 to=$2 name
  for name in nqueens shaders bench leaf; do
    if [[ -e $dir/$name ]]; then
      cp "$dir/$name" "$to/$name"
    elif [[ -e $dir/$name.gz ]]; then
      gzip --decompress --stdout "$dir/$name.gz" >"$to/$name"
    elif [[ -e $dir/$name.xz ]]; then
      xz --decompress --stdout "$dir/$name.xz" >"$to/$name"
    elif [[ -e $dir/$name.zst ]]; then
      zstd --quiet --decompress --stdout "$dir/$name.zst" >"$to/$name"
    elif [[ $name != leaf ]]; then
      echo "$dir has no $name, $name.gz, $name.xz or $name.zst" >&2
      return 1
    fi
    if [[ -e $to/$name ]]; then chmod +x "$to/$name"; fi
  done
}

# Uses the Vulkan loader in DIR, if there is one, and says which loader is used.
loader() {
  local dir=$1 to=$2 package found
  for package in "$dir"/libvulkan1_*.deb; do
    if [[ -e $package ]]; then
      dpkg-deb --extract "$package" "$to/loader"
    fi
  done
  if [[ -e $dir/libvulkan.so.1 ]]; then
    mkdir -p "$to/loader"
    cp --dereference "$dir/libvulkan.so.1" "$to/loader/"
  fi
  found=$(find "$to/loader" -name libvulkan.so.1 2>/dev/null | head -n 1) || true
  if [[ -n $found ]]; then
    LD_LIBRARY_PATH=$(dirname "$found")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
    echo "Vulkan loader: carried, $(readlink -f "$found" | xargs basename), SHA-256 $(sha256sum "$found" | cut -c 1-16)"
  elif found=$(ldconfig -p 2>/dev/null | grep -m 1 libvulkan.so.1); then
    echo "Vulkan loader: the system's, $(readlink -f "${found##*=> }")"
  else
    echo "Vulkan loader: none in DIR, and the system has none"
  fi
  manifest "$to"
}

# Names the driver to the loader where NVIDIA's library is there, but no manifest of it.
manifest() {
  local library
  if [[ -n ${VK_DRIVER_FILES:-} ]]; then
    echo "VK_DRIVER_FILES: $VK_DRIVER_FILES"
  elif library=$(ldconfig -p 2>/dev/null | grep -m 1 -o '/.*libGLX_nvidia.so.0$') \
    && ! grep -qs libGLX_nvidia {/etc,/usr/share,/usr/local/share}/vulkan/icd.d/*.json; then
    printf '{"file_format_version": "1.0.1", "ICD": {"library_path": "%s", "api_version": "1.3.0"}}\n' \
      "$library" >"$1/nvidia.json"
    export VK_DRIVER_FILES=$1/nvidia.json
    echo "VK_DRIVER_FILES: written here, for $library"
  fi
}

# Whether a step has failed, and the result of each step; what is removed and ended in the end.
failed=0
programs=""
watcher=""
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

# Fails with a plain message unless there is an adapter.
devices() {
  local adapters
  "$1" devices
  adapters=$("$1" devices --json --no-test | sed 's/.*"adapters"://')
  if [[ $adapters == "[]"* ]]; then
    echo "There is no GPU adapter: the driver, its manifest or the Vulkan loader is missing. Nothing was measured."
    return 1
  fi
  if ! grep -qE '"kind":"(discrete|integrated|virtual)' <<<"$adapters"; then
    echo "All adapters are software: the times below are not those of a GPU."
  fi
}

# Times a board by both kinds of subproblems, twice if that is short, because the first run
# may compile shaders.
counts() {
  local program=$1 n kind result seconds best
  shift
  echo "n,subproblems,elapsed_s"
  for n in "$@"; do
    for kind in prefixes column-sets; do
      best=""
      for _ in 1 2; do
        result=$(timeout 60 "$program" count "$n" --subproblems "$kind" --device gpu --json) || result=""
        seconds=$(sed -n 's/.*"elapsed_s":\([0-9.]*\).*"published":"agrees".*/\1/p' <<<"$result")
        if [[ -z $seconds ]]; then break; fi
        if [[ ${seconds%.*} -gt 20 ]]; then best=$seconds && break; fi
        best=$(printf '%s\n' ${best:+"$best"} "$seconds" | sort -g | head -n 1)
      done
      echo "$n,$kind,${best:-not counted within 60 s, or not right}"
    done
  done
}

# Compares the times in the log $1 with the estimates $2 for the adapter in the log $3.
compare() {
  awk -F, '
    FILENAME == ARGV[1] { adapter = adapter $0; next }
    FILENAME == ARGV[2] { if ($1 != "gpu") { low[$1, $2, $3] = $4; high[$1, $2, $3] = $5; gpus[$1] } next }
    /^[0-9]+,(prefixes|column-sets),[0-9.]+$/ {
      known = 0
      for (gpu in gpus) if (index(adapter, gpu) && ((gpu, $1, $2) in low)) {
        known = 1; l = low[gpu, $1, $2]; h = high[gpu, $1, $2]
        verdict = $3 < l / 1.25 ? "faster than estimated" : $3 > h * 1.25 ? "slower than estimated" : "the estimate held"
        printf "n = %d by %s: %.3g s, estimate for %s %.3g to %.3g s: %s (%.2f times its middle)\n",
          $1, $2, $3, gpu, l, h, verdict, 2 * $3 / (l + h)
      }
      if (!known) printf "n = %d by %s: %.3g s; there is no estimate for this device\n", $1, $2, $3
    }' "$3" "$2" "$1"
}

# Writes clocks, power and temperature every second to $1 until it is ended.
watch_clocks() {
  nvidia-smi --format=csv --loop-ms=1000 \
    --query-gpu=timestamp,name,driver_version,clocks.sm,clocks.mem,power.draw,temperature.gpu,utilization.gpu >"$1" 2>&1 &
  watcher=$!
}

run() {
  local dir arguments sizes
  dir=$(cd "$1" && pwd)
  mkdir -p "$2"
  out=$(cd "$2" && pwd)
  read -ra arguments <<<"${BENCH_ARGUMENTS:-}"
  read -ra sizes <<<"${COUNT_SIZES:-18 20}"
  programs=$(mktemp -d)
  trap 'rm -rf "$programs"; if [[ -n $watcher ]]; then kill "$watcher" 2>/dev/null || true; fi' EXIT
  unpack "$dir" "$programs"
  loader "$dir" "$programs" >"$out/loader.log"
  # With the first variable the tests and the bench fail if they find no adapter; the second suppresses a
  # warning of Mesa's device-select layer.
  export NQUEENS_EXPECT_ADAPTER=1 NODEVICE_SELECT=1
  {
    echo "commit $(cat "$dir/commit")"
    date -u
    uname -srm
    grep -m 1 'model name' /proc/cpuinfo || true
    ldd --version 2>&1 | sed -n 1p
    cat "$out/loader.log"
    nvidia-smi 2>/dev/null || echo "no nvidia-smi: clocks and power are not recorded"
  } | tee "$out/machine.log"
  export -f devices counts
  step devices 60 bash -c 'devices "$@"' devices "$programs/nqueens"
  if ((failed)); then
    tail -n 2 "$out/devices.log"
    exit 1
  fi
  if command -v nvidia-smi >/dev/null; then watch_clocks "$out/clocks.csv"; fi
  if [[ -e $programs/leaf && -n $watcher ]]; then step leaf 40 "$programs/leaf" "$dir/calls.bin"; fi
  step counts 120 bash -c 'counts "$@"' counts "$programs/nqueens" "${sizes[@]}"
  # The tests, which are long, come last; they need at least this much of the time.
  local left=$((budget - SECONDS - 15 - ${TEST_SECONDS:-130}))
  if ((left > 420)); then left=420; fi
  if ((left < 1)); then left=1; fi
  step bench $((left + 15)) "$programs/bench" --seconds "$left" "${arguments[@]}"
  step selftest 100 "$programs/nqueens" selftest --long --device gpu
  step shaders 120 "$programs/shaders" shaders_agree_with_the_oracle
  if [[ -n $watcher ]]; then summary+="clocks: $(clocks "$out/clocks.csv")"$'\n'; fi
  if [[ -e $dir/estimates.csv ]]; then
    summary+=$(compare "$out/counts.log" "$dir/estimates.csv" "$out/devices.log")$'\n'
  fi
  printf '\n%s%d s in total\n' "$summary" "$SECONDS" | tee "$out/summary.log"
  exit "$failed"
}

# Prints the range of clocks and power while the GPU was busy.
clocks() {
  awk -F', ' '
    $8 + 0 >= 50 {
      clock = $4 + 0; power = $6 + 0; n++
      if (n == 1 || clock < least) least = clock
      if (clock > most) most = clock
      if (power > watts) watts = power
    }
    END {
      if (n) printf "%d to %d MHz, at most %.0f W, in %d seconds at half load or more", least, most, watts, n
      else printf "the GPU was never at half load"
    }' "$1"
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
