//! A changed certificate is refused, or proves a statement that is true.

use std::panic::{AssertUnwindSafe, catch_unwind};

use nqueens_proof::{ErrorClass, Meter, check_within, open};

use crate::mutations::Mutations;

#[test]
fn changed_certificates_prove_only_true_statements() {
    let mutations = Mutations::new();
    let seeds = Mutations::seeds(10_000);
    let (mut same, mut other, mut invalid, mut unfinished) = (0, 0, 0, 0);
    for &seed in &seeds {
        let mutation = mutations.get(seed);
        let mut meter = Meter::new(Some(Mutations::LIMIT));
        let check = AssertUnwindSafe(|| check_within(&mutation.bytes, &mut meter));
        let checked = catch_unwind(check).unwrap_or_else(|_| panic!("{mutation}: a panic"));
        match checked {
            Ok(statement) => {
                assert!(mutations.is_true(&statement, &mutation), "{mutation}: {statement}");
                if mutations.is_original(&statement, &mutation) { same += 1 } else { other += 1 }
            }
            Err(error) => match error.class() {
                ErrorClass::Unfinished => unfinished += 1,
                ErrorClass::Invalid | ErrorClass::Unreadable => invalid += 1,
            },
        }
        // A change that keeps the old checksum is detected, whatever it changes.
        if !mutation.is_sealed && open(&mutation.bytes).is_ok() {
            assert!(mutations.is_unchanged(&mutation), "{mutation}: the checksum");
        }
    }
    if seeds.len() >= 10_000 {
        assert!(
            same > 500 && other > 100 && invalid > 5000,
            "{same} prove the same, {other} another true statement, {invalid} nothing"
        );
        assert!(unfinished < 100, "{unfinished} were not finished");
    }
}
