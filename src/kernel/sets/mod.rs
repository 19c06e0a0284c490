//! Counting by column sets: a bit-sliced meet in the middle.
//!
//! For a set of columns (see [`SetFamily`]) the lower half's placements are listed once, as two
//! words each: the columns of the first upper row that they attack along either diagonal. The upper
//! queens are then the same for the whole list, so that their conflicts with each other are settled
//! once: rows next to the centre filter the list, and the outer eight rows run as a bit-sliced
//! kernel, 64 states a word, over their completions.
//!
//! - `placements`: tables of all placements of four rows, by their columns;
//! - `lists`: the list of a set, from those tables;
//! - `engine`: filters, completions and sums;
//! - `block`: the bit planes of a part of a list;
//! - `vector`: the operations of an instruction set, with a portable definition.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod block;
mod engine;
mod lists;
mod placements;
mod vector;

use engine::Engine;
use crate::decomposition::SetFamily;

pub fn total(family: &SetFamily, every: u64, kind: &str) -> u128 {
    let sets = (0..family.sets()).filter(|i| i % every == 0).filter_map(|i| family.set(i));
    let t = std::time::Instant::now();
    let (sum, c) = match kind {
        "avx2" => { let mut engine = Engine::new(family); let v = avx2::Avx2::detect().unwrap(); (sets.map(|set| v.count(&mut engine, &set) * u128::from(set.weight)).sum(), engine.counters()) }
        "avx512" => { let mut engine = Engine::new(family); let v = avx512::Avx512::detect().unwrap(); (sets.map(|set| v.count(&mut engine, &set) * u128::from(set.weight)).sum(), engine.counters()) }
        _ => { let mut engine = Engine::<8>::new(family); (sets.map(|set| engine.count(vector::Portable, &set) * u128::from(set.weight)).sum(), engine.counters()) }
    };
    eprintln!("{:?} {:?} {:?}", family.rule(), c, t.elapsed());
    sum
}
