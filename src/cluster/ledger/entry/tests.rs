use super::*;
use crate::board::{Piece, Problem};
use crate::decomposition::{Job, Scheme};
use crate::tally::Residues;

#[test]
fn the_text_of_an_entry_is_stable() {
    let job =
        Job::new(Problem::empty(Piece::Queen, 16), Scheme::CentreCross, None, 64).expect("small");
    let mut done = UnitDone {
        job: job.hash(),
        unit: 7,
        tally: Tally::from_parts(276, Residues::of(276), 1 << 70),
        worker: "w1".into(),
        owner: String::new(),
        kernel: "avx512".into(),
        device: "cpu".into(),
        build: "0.1.0".into(),
        attempt: 1,
        elapsed_s: 0.1,
        checks: None,
        sub_sums: SubSums::default(),
        at_ms: 1_700_000_000_000,
    };
    let text = serde_json::to_string(&Entry::UnitDone(done.clone())).expect("serialises");
    assert_eq!(
        text,
        r#"{"unit_done":{"job":"e5de266bef88e30784f61efc53666cec","unit":7,"tally":{"thirds":"276","residues":[276,276],"nodes":"1180591620717411303424"},"worker":"w1","kernel":"avx512","device":"cpu","build":"0.1.0","attempt":1,"elapsed_s":0.1,"at_ms":1700000000000}}"#
    );
    assert_eq!(
        serde_json::from_str::<Entry>(&text).expect("reads back"),
        Entry::UnitDone(done.clone())
    );
    done.owner = "anna".into();
    done.checks = Some(DrawnChecks { peer: Some(CheckDepth::Spot), audit: None });
    done.sub_sums = SubSums(vec![u128::MAX, 276]);
    let done = Entry::UnitDone(done);
    let current = text.replace(r#""worker":"w1","#, r#""worker":"w1","owner":"anna","#).replace(
        r#","at_ms""#,
        r#","checks":{"peer":"spot"},"sub_sums":["340282366920938463463374607431768211455","276"],"at_ms""#,
    );
    assert_eq!(serde_json::to_string(&done).expect("serialises"), current);
    assert_eq!(serde_json::from_str::<Entry>(&current).expect("reads back"), done);
    assert_eq!(done.job(), Some(job.hash()));
}

#[test]
fn the_text_of_checks_and_disputes_is_stable() {
    let job = JobHash::from_bytes([0xab; 16]);
    let check = Entry::SpotCheck(SpotCheck {
        job,
        unit: 7,
        sub_ranges: vec![3, 17],
        sums: SubSums(vec![u128::MAX, 24]),
        worker: "w2".into(),
        owner: "anna".into(),
        kernel: "avx2".into(),
        device: "cpu".into(),
        build: "0.1.0".into(),
        agrees: true,
        elapsed_s: 0.5,
        at_ms: 1_700_000_000_000,
    });
    let disputed =
        Entry::JobState(PhaseChanged { job, state: Phase::Disputed, at_ms: 1_700_000_000_000 });
    let name = "ab".repeat(16);
    for (entry, text) in [
        (
            check,
            format!(
                r#"{{"spot_check":{{"job":"{name}","unit":7,"sub_ranges":[3,17],"sums":["340282366920938463463374607431768211455","24"],"worker":"w2","owner":"anna","kernel":"avx2","device":"cpu","build":"0.1.0","agrees":true,"elapsed_s":0.5,"at_ms":1700000000000}}}}"#
            ),
        ),
        (
            disputed,
            format!(
                r#"{{"job_state":{{"job":"{name}","state":"disputed","at_ms":1700000000000}}}}"#
            ),
        ),
    ] {
        assert_eq!(serde_json::to_string(&entry).expect("serialises"), text);
        assert_eq!(serde_json::from_str::<Entry>(&text).expect("reads back"), entry);
        assert_eq!(entry.job(), Some(job));
    }
}

#[test]
fn the_boot_number_of_a_worker_is_stored_exactly() {
    let drained = Entry::WorkerDrained(WorkerDrained {
        worker: "w".into(),
        boot: u64::MAX,
        at_ms: 1_700_000_000_000,
    });
    let text =
        r#"{"worker_drained":{"worker":"w","boot":18446744073709551615,"at_ms":1700000000000}}"#;
    assert_eq!(serde_json::to_string(&drained).expect("serialises"), text);
    assert_eq!(serde_json::from_str::<Entry>(text).expect("reads back"), drained);
}

#[test]
fn each_phase_is_at_the_index_of_its_number() {
    for (number, phase) in (0..).zip(Phase::ALL) {
        assert_eq!(phase as usize, number);
    }
}
