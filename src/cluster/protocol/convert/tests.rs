use proptest::prelude::*;
use prost::Message;

use super::*;

fn completion(counts: &[(u32, u128)], unit: u64, attempt: u64) -> UnitResult {
    let mut parts = Parts::default();
    for &(weight, count) in counts {
        parts.add(weight, count, Residues::of(count), count / 2).expect("small");
    }
    let source = Source {
        worker: "w".into(),
        owner: "o".into(),
        kernel: "k".into(),
        device: "d".into(),
        build: "0".into(),
    };
    let unit = UnitId { job: JobHash::from_bytes([7; 16]), unit };
    let tally = parts.total().expect("small");
    let sub_sums = vec![tally.thirds() / 2, tally.thirds() - tally.thirds() / 2];
    UnitResult {
        unit,
        attempt,
        grant: vec![7; 40],
        tally,
        parts,
        sub_sums,
        source,
        elapsed_s: 1.5,
        signature: None,
    }
}

proptest! {
    #[test]
    fn results_round_trip_through_messages(
        counts in proptest::collection::vec((1u32..25, 0u128..1 << 100), 0..9), unit: u64, attempt: u64
    ) {
        let sent = completion(&counts, unit, attempt);
        let bytes = messages::result(&sent).encode_to_vec();
        let read = v1::Result::decode(&bytes[..]).expect("what was encoded");
        prop_assert_eq!(messages::unit_result(read, ("w", "o"), "0"), Ok(sent));
    }

    #[test]
    fn no_bytes_cause_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(result) = v1::Result::decode(&bytes[..]) {
            let _ = messages::unit_result(result, ("w", "o"), "0");
        }
        if let Ok(request) = v1::SyncRequest::decode(&bytes[..]) {
            let _ = messages::sync_request(request, ("w".into(), "o".into(), None));
        }
    }
}

#[test]
fn an_unknown_field_is_ignored() {
    let mut bytes = messages::result(&completion(&[(24, 5)], 1, 2)).encode_to_vec();
    // Field 1000, a string.
    bytes.extend([0xc2, 0x3e, 3, b'n', b'e', b'w']);
    let read = v1::Result::decode(&bytes[..]).expect("a message");
    assert_eq!(messages::unit_result(read, ("w", "o"), "0"), Ok(completion(&[(24, 5)], 1, 2)));
}

#[test]
fn malformed_messages_are_refused() {
    let good = || messages::result(&completion(&[(24, 5)], 1, 2));
    let refused = |result| messages::unit_result(result, ("w", "o"), "0").expect_err("malformed");
    assert_eq!(refused(v1::Result { tally: None, ..good() }), Malformed::Missing("a tally"));
    assert!(matches!(refused(v1::Result { job: vec![1], ..good() }), Malformed::Length(_, 1, 16)));
    assert!(matches!(refused(v1::Result { elapsed_s: f64::NAN, ..good() }), Malformed::Range(_)));
    assert!(matches!(refused(v1::Result { kernel: "a\nb".into(), ..good() }), Malformed::Range(_)));
    let parts = vec![good().parts[0].clone(); 65];
    assert!(matches!(refused(v1::Result { parts, ..good() }), Malformed::TooMany(_, 65, 64)));
    let held = vec![v1::Held::default(); MOST_HELD + 1];
    let request = v1::SyncRequest { held, ..v1::SyncRequest::default() };
    assert!(matches!(
        messages::sync_request(request, ("w".into(), "o".into(), None)),
        Err(Malformed::TooMany(..))
    ));
}
