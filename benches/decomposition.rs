//! The time to decompose a board into prefixes and to iterate over them. Each run asserts the
//! number of prefixes.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use nqueens::board::{Piece, Problem};
use nqueens::decomposition::{Decomposition, Job, Scheme};

fn decomposition(n: usize) -> Decomposition {
    let problem = Problem::empty(Piece::Queen, n);
    Decomposition::new(
        Job::new(problem, Scheme::CentreCross, None, 64).expect("a board that can be counted"),
    )
}

fn decompose(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decomposition");
    group.sample_size(20);
    for (n, prefixes) in [(16, 18_908), (17, 9_697), (20, 77_760), (22, 140_211)] {
        group.throughput(Throughput::Elements(prefixes));
        group.bench_function(format!("number the prefixes, n = {n}"), |b| {
            b.iter(|| assert_eq!(decomposition(black_box(n)).prefixes(), prefixes));
        });
        let whole = decomposition(n);
        group.bench_function(format!("iterate over the prefixes, n = {n}"), |b| {
            b.iter(|| {
                let mut seen = 0;
                whole.for_each(0..whole.prefixes(), |_, prefix| {
                    seen += u64::from(black_box(prefix).filled() > 0)
                });
                assert_eq!(seen, prefixes);
            });
        });
    }
}

criterion_group!(benches, decompose);
criterion_main!(benches);
