use super::*;

#[test]
fn a_grant_is_valid_for_its_grantee_only() {
    let key = CampaignKey::from_seed(1);
    let job = JobHash::from_bytes([3; 16]);
    let grantee = Grantee { attempt: 7, worker: "w", owner: "o", job: &job, thirds: Some(12) };
    let grant = Grant { units: 5..9, mirrored: true, sub_ranges: SubRangeSet::from_bits(0b1010) };
    let bytes = key.seal(&grant, &grantee);
    assert_eq!(key.open(&bytes, &grantee), Some(grant));
    for other in [
        Grantee { attempt: 8, ..grantee },
        Grantee { worker: "v", ..grantee },
        Grantee { worker: "wo", owner: "", ..grantee },
        Grantee { job: &JobHash::from_bytes([4; 16]), ..grantee },
        Grantee { thirds: Some(13), ..grantee },
        Grantee { thirds: None, ..grantee },
    ] {
        assert_eq!(key.open(&bytes, &other), None, "{other:?}");
    }
    for at in 0..bytes.len() {
        let mut forged = bytes.clone();
        forged[at] ^= 1;
        assert_eq!(key.open(&forged, &grantee), None, "byte {at}");
    }
    assert_eq!(key.open(&bytes[..20], &grantee), None);
    assert_eq!(CampaignKey::from_seed(2).open(&bytes, &grantee), None);
}

#[test]
fn draws_are_even_and_depend_on_every_field() {
    let key = CampaignKey::from_seed(1);
    let draw = |i: u32| key.draw("check", &[&i.to_be_bytes()]);
    let mean = (0..10_000).map(draw).sum::<f64>() / 10_000.0;
    assert!((mean - 0.5).abs() < 0.02, "{mean}");
    assert_eq!(draw(1), draw(1));
    assert_ne!(key.draw("check", &[b"ab", b"c"]), key.draw("check", &[b"a", b"bc"]));
    assert_ne!(key.draw("check", &[]), key.draw("audit", &[]));
}
