#!/usr/bin/env bash
# Builds the page on which a board of queens is played with, as a folder that any web server serves.
#
# Usage: crates/play/build.sh FOLDER. Compiles nqueens-play for wasm32-wasip1, which needs no other
# tool than rustup and cargo, and copies it with the files of the page to FOLDER.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
mkdir -p "$1"
folder=$(realpath "$1")
cd "$(dirname "$0")/../.."
target=wasm32-wasip1
if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
  rustup target add "$target"
fi
cargo build --release --locked --quiet -p nqueens-play --target "$target"
cp "${CARGO_TARGET_DIR:-target}/$target/release/nqueens-play.wasm" crates/play/page/* "$folder"
cp src/cluster/dashboard/page/theme.js src/cluster/dashboard/page/icon.svg "$folder"
