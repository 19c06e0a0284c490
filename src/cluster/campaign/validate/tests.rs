use super::*;
use crate::cluster::campaign::{Source, UnitId};
use crate::decomposition::JobHash;
use crate::tally::{Parts, Residues, Tally};

fn result(completions: u128, nodes: u128, sub_sums: Vec<u128>) -> UnitResult {
    let mut parts = Parts::default();
    parts.add(24, completions, Residues::of(completions), nodes).expect("small");
    let source = Source {
        worker: "w".into(),
        owner: "o".into(),
        kernel: "k".into(),
        device: "d".into(),
        build: "b".into(),
    };
    let unit = UnitId { job: JobHash::from_bytes([1; 16]), unit: 0 };
    let tally = parts.total().unwrap_or_else(|_| Tally::from_parts(0, Residues::default(), 0));
    UnitResult {
        unit,
        attempt: 1,
        grant: Vec::new(),
        tally,
        parts,
        sub_sums,
        source,
        elapsed_s: 1.0,
        signature: None,
    }
}

fn limits() -> UnitLimits {
    UnitLimits {
        prefixes: 2,
        weights: [24].into(),
        most_thirds: 24 * 100,
        least_nodes: 0,
        most_nodes: 1000,
    }
}

#[test]
fn impossible_results_are_refused() {
    let grant = Grant { units: 0..1, mirrored: false, sub_ranges: SubRangeSet::default() };
    let verdict = |result: &UnitResult| check(result, &grant, Some(&limits()));
    assert_eq!(verdict(&result(10, 20, vec![100, 140])), Ok(()));
    assert_eq!(verdict(&result(10, 20, vec![])), Ok(()));
    // Some kernels make no nodes of a prefix.
    assert_eq!(verdict(&result(0, 0, vec![])), Ok(()));
    let wrong = [
        result(101, 20, vec![]),
        result(10, 1001, vec![]),
        result(10, 20, vec![100, 141]),
        result(10, 20, vec![100, 100, 40]),
        result(10, 20, vec![u128::MAX, 241]),
        result(1 << 118, 20, vec![]),
        UnitResult { elapsed_s: 0.0, ..result(10, 1 << 50, vec![]) },
    ];
    for result in wrong {
        assert!(verdict(&result).is_err(), "{result:?}");
    }
    let mut other = result(10, 20, vec![]);
    other.parts.add(12, 1u64, Residues::of(1), 0u64).expect("small");
    other.tally = other.parts.total().expect("agrees");
    assert_eq!(verdict(&other), Err("has a weight that its unit does not have"));
    // A recount of one sub-range has fewer nodes and a single sum.
    let spot = Grant { mirrored: true, sub_ranges: SubRangeSet::from_bits(2), ..grant };
    assert_eq!(check(&result(1, 1, vec![24]), &spot, Some(&limits())), Ok(()));
    assert!(check(&result(1, 1, vec![23]), &spot, Some(&limits())).is_err());
}
