//! Reads one request from the standard input and writes its answer to the standard output, both as
//! JSON: see [`nqueens_play::answer`]. The page runs this program, compiled for wasm32-wasip1, once
//! for each request. A WASI program needs no `unsafe` code and no tool that generates bindings.

use std::io::{self, Read, Write};

/// Limit on the size of a request. A board of 32 rows with every square decided has 8 KiB.
const MOST_BYTES: u64 = 64 << 10;

fn main() -> io::Result<()> {
    let mut request = String::new();
    io::stdin().lock().take(MOST_BYTES).read_to_string(&mut request)?;
    let mut out = io::stdout().lock();
    out.write_all(nqueens_play::answer(&request).as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}
