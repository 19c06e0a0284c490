use super::super::authority_folder;
use super::*;

const NOW_MS: u64 = 1_800_000_000_000;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

#[test]
fn the_operators_certificate_is_replaced_when_due_and_after_the_clock_was_set_back() {
    let data = std::env::temp_dir().join(format!("nqueens-operator-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&data);
    let authority = Authority::init(&authority_folder(&data), &[], NOW_MS).expect("an authority");
    let keep = |now_ms| renew_operator(&authority, &data, now_ms).expect("kept");
    let is_let_in = |now_ms| {
        let kept = Credentials::load(&operator_folder(&data)).expect("it exists");
        let live =
            authority.certificates().expect("readable").into_iter().filter(|c| c.is_live(now_ms));
        let live: Vec<_> = live.filter(|c| c.not_before_ms <= now_ms).collect();
        live.len() == 1
            && live[0].name == *kept.name()
            && live[0].not_after_ms == kept.not_after_ms()
    };
    assert_eq!(
        (keep(NOW_MS), keep(NOW_MS), keep(NOW_MS + DAY_MS)),
        (Some(Renewal::Due), None, None)
    );
    let back_ms = NOW_MS - DAY_MS;
    assert!(!is_let_in(back_ms));
    assert_eq!(keep(back_ms), Some(Renewal::ClockSetBack { by_ms: DAY_MS }));
    assert!(is_let_in(back_ms));
    assert_eq!(keep(back_ms), None);
    // Once the clock is right again, nothing is replaced.
    assert_eq!(keep(NOW_MS), None);
    assert_eq!(keep(NOW_MS + 4 * DAY_MS), Some(Renewal::Due));
    assert!(is_let_in(NOW_MS + 4 * DAY_MS));
    let _ = std::fs::remove_dir_all(&data);
}
