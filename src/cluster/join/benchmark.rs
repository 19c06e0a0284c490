//! Empty boards, with which a page measures its GPU.

use std::sync::OnceLock;

use axum::body::Bytes;
use bytemuck::cast_slice;
use serde_json::json;

use super::units::{MOST_PREFIXES, batch_head, batches_frame, table_head};
use crate::board::{Piece, Problem};
use crate::decomposition::{Decomposition, Job, Scheme};
use crate::kernel::gpu::RemoteBatches;
use crate::kernel::gpu::tables::Tables;
use crate::oeis::{Sequence, lookup};

/// The sizes of the boards.
pub(super) const SIZES: [usize; 5] = [12, 14, 16, 18, 20];

/// The boards, each prepared on first use.
#[derive(Debug, Default)]
pub(super) struct Benchmarks([OnceLock<Bytes>; SIZES.len()]);

impl Benchmarks {
    /// Returns the board of size `n` as a page reads it, or `None` if it is not in [`SIZES`]. Takes
    /// some milliseconds at first.
    pub(super) fn get(&self, n: usize) -> Option<Bytes> {
        let (_, board) = SIZES.iter().zip(&self.0).find(|(size, _)| **size == n)?;
        Some(board.get_or_init(|| Bytes::from(prepare(n))).clone())
    }
}

/// Returns the tables and the batches of an empty board, with the weight of each slot in thirds of
/// a solution and the published number of solutions.
fn prepare(n: usize) -> Vec<u8> {
    let problem = Problem::empty(Piece::Queen, n);
    let scheme = Scheme::best(&problem);
    let job = Job::new(problem, scheme, None, u64::MAX).expect("the board is small");
    let decomposition = Decomposition::new(job);
    let tables = Tables::new(&decomposition);
    let all = 0..decomposition.prefixes();
    let batches =
        RemoteBatches::new(&decomposition, &tables, std::slice::from_ref(&all), MOST_PREFIXES)
            .expect("the shaders support empty boards of these sizes");
    let solutions = lookup(Sequence::Total, n).expect("the value is published").to_string();
    let head = json!({ "n": n, "solutions": solutions, "tables": table_head(&tables) });
    let data = vec![cast_slice(tables.lower_rows()), cast_slice(tables.upper_rows())];
    batches_frame((head, data), &batches, |batch| {
        let mut head = batch_head(batch);
        head["weights"] = batch.weights().collect();
        head
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boards_of_the_benchmark_are_small_enough_to_send() {
        let benchmarks = Benchmarks::default();
        for n in SIZES {
            let bytes = benchmarks.get(n).expect("a size").len();
            assert!(bytes < 4_000_000, "n = {n}: {bytes} bytes");
        }
        assert!(benchmarks.get(13).is_none());
    }
}
