//! A coordinator authorises only live certificates that it has issued, and only for what their role
//! may do.

use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nqueens::cluster::auth::{
    AccessError, Action, Authority, AuthorityError, Credentials, CredentialsError, EnrollError,
    Issued, KeyRequest, Name, Renewal, Role, Token,
};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, SanType,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::FromDer;

const NOW_MS: u64 = 1_800_000_000_000;
const SECOND_MS: u64 = 1000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// A temporary folder, removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir()
            .join(format!("nqueens-credentials-{}-{count}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn new_authority(folder: &Folder) -> Authority {
    Authority::init(&folder.path("authority"), &[], NOW_MS).expect("an authority")
}

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

fn token(authority: &Authority, role: Role, uses: u32) -> Token {
    let uses = NonZeroU32::new(uses).expect("some");
    authority.create_token(role, uses, HOUR_MS, NOW_MS).expect("a token")
}

fn request() -> Vec<u8> {
    KeyRequest::new(&name("anybody")).expect("a key").request().to_vec()
}

fn enrolled(authority: &Authority, who: &str, role: Role) -> Issued {
    authority.enroll(&token(authority, role, 1), &name(who), &request(), NOW_MS).expect("enrolled")
}

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM")
}

fn certificate(issued: &Issued) -> CertificateDer<'static> {
    der(&issued.certificate_pem)
}

#[test]
fn a_token_is_exchanged_for_as_many_certificates_as_it_has_uses() {
    let folder = Folder::new();
    let authority = new_authority(&folder);
    for uses in [1, 3] {
        let token = token(&authority, Role::Worker, uses);
        for use_ in 0..uses {
            let name = name(&format!("worker-{uses}-{use_}"));
            let issued =
                authority.enroll(&token, &name, &request(), NOW_MS).expect("a use is left");
            assert_eq!((&issued.identity.name, issued.identity.role), (&name, Role::Worker));
            assert_eq!(
                authority.identify(&certificate(&issued), NOW_MS).expect("known"),
                issued.identity
            );
        }
        for again in ["other", "worker-1-x"] {
            let refused = authority.enroll(&token, &name(again), &request(), NOW_MS);
            assert!(matches!(refused, Err(EnrollError::TokenUsed)), "{refused:?}");
        }
    }
}

#[test]
fn concurrent_enrolments_cannot_exceed_the_uses_of_a_token() {
    let folder = Folder::new();
    let authority = new_authority(&folder);
    let token = token(&authority, Role::Worker, 3);
    // As if by other processes, each with its own copy of the registry.
    let others: Vec<Authority> =
        (0..2).map(|_| Authority::open(&folder.path("authority")).expect("opens")).collect();
    let succeeded: usize = std::thread::scope(|scope| {
        let attempts: Vec<_> = (0..12)
            .map(|i| {
                let (handle, token) = (&others[i % 2], &token);
                scope.spawn(move || {
                    usize::from(
                        handle.enroll(token, &name(&format!("w{i}")), &request(), NOW_MS).is_ok(),
                    )
                })
            })
            .collect();
        attempts.into_iter().map(|attempt| attempt.join().expect("no panic")).sum()
    });
    assert_eq!(succeeded, 3);
    assert_eq!(authority.certificates().expect("readable").len(), 3);
}

#[test]
fn a_token_is_valid_until_it_expires() {
    let folder = Folder::new();
    let authority = new_authority(&folder);
    let token = token(&authority, Role::Worker, 2);
    authority
        .enroll(&token, &name("a"), &request(), NOW_MS + HOUR_MS - 1)
        .expect("the last moment");
    for later_ms in [HOUR_MS, HOUR_MS + 1, 400 * DAY_MS] {
        let refused = authority.enroll(&token, &name("b"), &request(), NOW_MS + later_ms);
        assert!(matches!(refused, Err(EnrollError::TokenExpired)), "{refused:?}");
    }
}

#[test]
fn a_wrong_secret_or_fingerprint_is_refused_and_writes_nothing() {
    let (folder, another_folder) = (Folder::new(), Folder::new());
    let (authority, another) = (new_authority(&folder), new_authority(&another_folder));
    let text = token(&authority, Role::Operator, 1).to_string();
    let register = || fs::read(folder.path("authority/register")).expect("readable");
    let before = register();

    for at in text.len() - 40..text.len() {
        let letter = if &text[at..=at] == "a" { "b" } else { "a" };
        let forged: Token =
            [&text[..at], letter, &text[at + 1..]].concat().parse().expect("a token");
        let refused = authority.enroll(&forged, &name("a"), &request(), NOW_MS);
        assert!(matches!(refused, Err(EnrollError::UnknownToken)), "{refused:?}");
    }
    let (_, secret) = text.rsplit_once('.').expect("three parts");
    let forged = format!("nqt1.{}.{secret}", another.fingerprint());
    let forged: Token = forged.parse().expect("a token");
    for authority in [&authority, &another] {
        let refused = authority.enroll(&forged, &name("a"), &request(), NOW_MS);
        assert!(
            matches!(refused, Err(EnrollError::AnotherAuthority | EnrollError::UnknownToken)),
            "{refused:?}"
        );
    }
    assert_eq!(register(), before);
    assert!(!String::from_utf8(before).expect("text").contains(secret), "only a hash is kept");
}

#[test]
fn a_revoked_token_is_refused() {
    let folder = Folder::new();
    let authority = new_authority(&folder);
    let token = token(&authority, Role::Worker, 5);
    authority.revoke_token(token.id(), NOW_MS).expect("revoked");
    let refused = authority.enroll(&token, &name("a"), &request(), NOW_MS);
    assert!(matches!(refused, Err(EnrollError::UnknownToken)), "{refused:?}");
    assert!(matches!(
        authority.revoke_token(token.id(), NOW_MS),
        Err(AuthorityError::NoSuchToken(_))
    ));
}

#[test]
fn a_lost_answer_is_repeated_for_the_same_key_without_another_use() {
    let folder = Folder::new();
    let authority = new_authority(&folder);
    let token = token(&authority, Role::Worker, 2);
    let request_a = request();
    let lost = authority.enroll(&token, &name("a"), &request_a, NOW_MS).expect("enrolled");
    let found =
        authority.enroll(&token, &name("a"), &request_a, NOW_MS + MINUTE_MS).expect("issued again");
    assert_ne!(lost.identity.serial, found.identity.serial);
    assert!(matches!(authority.identify(&certificate(&lost), NOW_MS), Err(AccessError::Unknown)));
    assert_eq!(authority.tokens().expect("readable")[0].1.uses_left, 1);

    // After a renewal, the first key is no longer valid.
    authority.renew(&certificate(&found), &request(), NOW_MS).expect("renewed");
    let refused = authority.enroll(&token, &name("a"), &request_a, NOW_MS);
    assert!(matches!(refused, Err(EnrollError::NameInUse(_))), "{refused:?}");
}

#[test]
fn only_the_public_key_of_a_request_is_used() {
    let folder = Folder::new();
    let authority = new_authority(&folder);
    let key = KeyPair::generate().expect("a key");
    let mut greedy = CertificateParams::new(vec!["localhost".into()]).expect("names");
    greedy.distinguished_name.push(DnType::CommonName, "boss");
    greedy.subject_alt_names.push(SanType::URI("nqueens:role:operator".try_into().expect("a URI")));
    greedy.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    greedy.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::Any];
    let request = greedy.serialize_request(&key).expect("a request");

    let token = token(&authority, Role::Worker, 1);
    let issued = authority.enroll(&token, &name("small"), request.der(), NOW_MS).expect("enrolled");
    assert_eq!((issued.identity.name.as_str(), issued.identity.role), ("small", Role::Worker));
    let bytes = certificate(&issued);
    let (_, read) =
        x509_parser::certificate::X509Certificate::from_der(&bytes).expect("a certificate");
    assert_eq!(read.subject().to_string(), "CN=small");
    assert!(!read.is_ca());
    let usage = read.extended_key_usage().expect("readable").expect("it exists").value;
    assert!(usage.client_auth && !usage.server_auth && !usage.any);
    let names =
        &read.subject_alternative_name().expect("readable").expect("it exists").value.general_names;
    assert_eq!(names.len(), 1);
    assert_eq!(names[0].to_string(), "URI(nqueens:role:worker)");

    // A renewal does not change the name or the role either.
    let renewed = authority.renew(&bytes, request.der(), NOW_MS).expect("renewed");
    assert_eq!((renewed.identity.name.as_str(), renewed.identity.role), ("small", Role::Worker));
}

#[test]
fn a_request_that_is_damaged_or_signed_by_another_key_is_refused_and_uses_nothing() {
    let folder = Folder::new();
    let authority = new_authority(&folder);
    let token = token(&authority, Role::Worker, 1);
    let good = request();
    // The signed part, and the signature; how the parser reads the tag of the algorithm between
    // them does not matter.
    let signed_end = 3 + 2 + usize::from(good[4]);
    assert_eq!((&good[..2], good[3]), (&[0x30, 0x81][..], 0x30), "a request of that size");
    for at in (0..signed_end).chain(signed_end + 12..good.len()) {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        let refused = authority.enroll(&token, &name("a"), &bad, NOW_MS);
        assert!(matches!(refused, Err(EnrollError::Certificate(_))), "byte {at}: {refused:?}");
    }
    let longer = [good.as_slice(), &[0]].concat();
    for bad in [&[][..], &good[..good.len() - 1], &longer, &vec![0x30; 1 << 20]] {
        let error = authority.enroll(&token, &name("a"), bad, NOW_MS).expect_err("refused");
        assert!(
            matches!(error, EnrollError::Certificate(_)) && error.to_string().lines().count() == 1,
            "{error}"
        );
    }
    authority.enroll(&token, &name("a"), &good, NOW_MS).expect("the use is left");
}

#[test]
fn a_name_is_free_again_once_it_is_revoked_or_has_expired() {
    let folder = Folder::new();
    let authority = new_authority(&folder);
    enrolled(&authority, "a", Role::Worker);
    let token = token(&authority, Role::Operator, 2);
    let refused = authority.enroll(&token, &name("a"), &request(), NOW_MS);
    assert!(matches!(refused, Err(EnrollError::NameInUse(_))), "{refused:?}");
    authority.revoke(&name("a"), NOW_MS).expect("revoked");
    authority.enroll(&token, &name("a"), &request(), NOW_MS).expect("free");
    assert_eq!(authority.tokens().expect("readable").len(), 2);

    let later_ms = NOW_MS + 8 * DAY_MS;
    let new =
        authority.create_token(Role::Viewer, NonZeroU32::MIN, HOUR_MS, later_ms).expect("a token");
    authority.enroll(&new, &name("a"), &request(), later_ms).expect("free");
}

#[test]
fn a_revoked_certificate_is_refused_at_once_even_by_another_process() {
    let folder = Folder::new();
    let authority = new_authority(&folder);
    let running = Authority::open(&folder.path("authority")).expect("opens");
    let token = token(&authority, Role::Worker, 2);
    let first = authority.enroll(&token, &name("a"), &request(), NOW_MS).expect("enrolled");
    let renewed = authority.renew(&certificate(&first), &request(), NOW_MS).expect("renewed");
    let other = enrolled(&authority, "b", Role::Worker);
    for issued in [&first, &renewed, &other] {
        running.authorize(Some(&certificate(issued)), Action::Sync, NOW_MS).expect("authorised");
    }

    let revoked = authority.revoke(&name("a"), NOW_MS).expect("revoked");
    assert_eq!((revoked.certificates, revoked.tokens.as_slice()), (2, &[token.id()][..]));
    for issued in [&first, &renewed] {
        let refused = running.authorize(Some(&certificate(issued)), Action::Sync, NOW_MS);
        assert!(matches!(refused, Err(AccessError::Revoked)), "{refused:?}");
        let refused = running.renew(&certificate(issued), &request(), NOW_MS);
        assert!(matches!(refused, Err(EnrollError::Access(AccessError::Revoked))), "{refused:?}");
    }
    running.identify(&certificate(&other), NOW_MS).expect("another's");
    assert!(matches!(authority.revoke(&name("a"), NOW_MS), Err(AuthorityError::NoSuchName(_))));
}

#[test]
fn a_certificate_is_valid_for_a_week_and_backdated_by_five_minutes() {
    let folder = Folder::new();
    let authority = new_authority(&folder);
    let issued = enrolled(&authority, "a", Role::Worker);
    assert_eq!(issued.identity.not_after_ms, NOW_MS + 7 * DAY_MS);
    let at = |now_ms| authority.identify(&certificate(&issued), now_ms);
    for good_ms in [NOW_MS - 5 * MINUTE_MS, NOW_MS, NOW_MS + 7 * DAY_MS] {
        at(good_ms).expect("valid");
    }
    assert!(matches!(at(NOW_MS - 5 * MINUTE_MS - 1), Err(AccessError::NotYetValid)));
    assert!(matches!(at(NOW_MS + 7 * DAY_MS + 1), Err(AccessError::Expired)));
    assert!(matches!(at(0), Err(AccessError::NotYetValid)));
    assert!(matches!(at(u64::MAX), Err(AccessError::Expired)));
    let refused = authority.renew(&certificate(&issued), &request(), NOW_MS + 7 * DAY_MS + 1);
    assert!(matches!(refused, Err(EnrollError::Access(AccessError::Expired))), "{refused:?}");
}

#[test]
fn a_certificate_that_is_not_valid_yet_allows_only_its_renewal() {
    let (folder, another_folder) = (Folder::new(), Folder::new());
    let (authority, another) = (new_authority(&folder), new_authority(&another_folder));
    let early_ms = NOW_MS - DAY_MS;
    for role in Role::ALL {
        let issued = enrolled(&authority, role.name(), role);
        for action in Action::ALL {
            let answer = authority.authorize(Some(&certificate(&issued)), action, early_ms);
            match action {
                Action::Renew => assert_eq!(answer.expect("authorised"), issued.identity),
                _ => assert!(
                    matches!(answer, Err(AccessError::NotYetValid)),
                    "{role} {action}: {answer:?}"
                ),
            }
        }
        let renewed =
            authority.renew(&certificate(&issued), &request(), early_ms).expect("renewed");
        let known = authority.identify(&certificate(&renewed), early_ms).expect("valid");
        let Issued { identity, .. } = issued;
        assert_eq!(
            (known.name, known.role, known.owner),
            (identity.name, identity.role, identity.owner)
        );
    }

    // A revoked certificate is refused at any time.
    let revoked = enrolled(&authority, "r", Role::Worker);
    authority.revoke(&name("r"), early_ms).expect("revoked");
    let replaced = enrolled(&authority, "s", Role::Worker);
    let next = authority.renew(&certificate(&replaced), &request(), NOW_MS).expect("renewed");
    authority.renew(&certificate(&next), &request(), early_ms).expect("renewed");
    let foreign = enrolled(&another, "w", Role::Worker);
    let mut changed = certificate(&enrolled(&authority, "c", Role::Worker)).to_vec();
    *changed.last_mut().expect("bytes") ^= 1;
    for (what, shown) in [
        ("revoked", certificate(&revoked)),
        ("replaced", certificate(&replaced)),
        ("of another authority", certificate(&foreign)),
        ("changed", changed.into()),
    ] {
        let refused = authority.renew(&shown, &request(), early_ms);
        let unknown = AccessError::Unknown.to_string();
        let message = refused.expect_err(what).to_string();
        assert!(
            message == unknown
                || (what == "revoked" && message == AccessError::Revoked.to_string()),
            "{what}: {message}"
        );
        assert!(authority.authorize(Some(&shown), Action::Renew, early_ms).is_err(), "{what}");
    }
}

#[test]
fn a_certificate_of_another_authority_is_unknown() {
    let (folder, another_folder) = (Folder::new(), Folder::new());
    let (authority, another) = (new_authority(&folder), new_authority(&another_folder));
    let foreign = enrolled(&another, "a", Role::Operator);
    enrolled(&authority, "a", Role::Operator);
    let refused = authority.identify(&certificate(&foreign), NOW_MS);
    assert!(matches!(refused, Err(AccessError::Unknown)), "{refused:?}");
    // Neither is the authority's own certificate, nor arbitrary bytes.
    for bytes in [&der(authority.certificate_pem())[..], &[], &[0x30; 100]] {
        assert!(matches!(authority.identify(bytes, NOW_MS), Err(AccessError::Unknown)));
    }
    let mut changed = certificate(&enrolled(&authority, "b", Role::Worker)).to_vec();
    *changed.last_mut().expect("bytes") ^= 1;
    assert!(matches!(authority.identify(&changed, NOW_MS), Err(AccessError::Unknown)));
}

#[test]
fn every_call_is_authorised_by_role_and_never_without_a_certificate() {
    let folder = Folder::new();
    let authority = new_authority(&folder);
    for role in Role::ALL {
        let issued = enrolled(&authority, role.name(), role);
        for action in Action::ALL {
            let answer = authority.authorize(Some(&certificate(&issued)), action, NOW_MS);
            match answer {
                Ok(identity) => {
                    assert!(role.may(action) && identity.role == role, "{role} {action}")
                }
                Err(AccessError::Forbidden { .. }) => assert!(!role.may(action), "{role} {action}"),
                Err(error) => panic!("{role} {action}: {error}"),
            }
            assert!(matches!(
                authority.authorize(None, action, NOW_MS),
                Err(AccessError::NoCertificate)
            ));
        }
    }
}

#[test]
fn a_renewal_keeps_name_and_role_and_replaces_what_was_never_received() {
    let folder = Folder::new();
    let authority = new_authority(&folder);
    let first = enrolled(&authority, "a", Role::Viewer);
    let later_ms = NOW_MS + 4 * DAY_MS;
    let lost = authority.renew(&certificate(&first), &request(), later_ms).expect("renewed");
    let second =
        authority.renew(&certificate(&first), &request(), later_ms).expect("renewed again");
    assert_eq!((second.identity.name.as_str(), second.identity.role), ("a", Role::Viewer));
    assert_eq!(second.identity.not_after_ms, later_ms + 7 * DAY_MS);
    authority.identify(&certificate(&first), later_ms).expect("the answer may be lost");
    assert!(matches!(authority.identify(&certificate(&lost), later_ms), Err(AccessError::Unknown)));
    authority.renew(&certificate(&second), &request(), later_ms).expect("renewed");
    assert!(matches!(
        authority.identify(&certificate(&first), later_ms),
        Err(AccessError::Unknown)
    ));
    assert_eq!(authority.certificates().expect("readable").len(), 2);
}

fn token_of(authority: &Authority, owner: &str, uses: u32) -> Token {
    let uses = NonZeroU32::new(uses).expect("some");
    authority
        .create_token_for(Some(&name(owner)), Role::Worker, uses, HOUR_MS, NOW_MS)
        .expect("a token")
}

#[test]
fn tokens_of_one_owner_give_one_owner_and_others_are_separate() {
    let folder = Folder::new();
    let authority = new_authority(&folder);
    let enrol = |token: &Token, who: &str| {
        let issued = authority.enroll(token, &name(who), &request(), NOW_MS).expect("enrolled");
        issued.identity.owner
    };
    let (one, two) = (token_of(&authority, "anna", 2), token_of(&authority, "anna", 1));
    for (token, who) in [(&one, "w1"), (&one, "w2"), (&two, "w3")] {
        assert_eq!(enrol(token, who).as_str(), "anna", "{who}");
    }
    let (lone, other) = (token(&authority, Role::Worker, 2), token(&authority, Role::Worker, 1));
    let owner = enrol(&lone, "w4");
    assert_eq!(owner.as_str(), format!("token:{}", lone.id()));
    assert_eq!(enrol(&lone, "w5"), owner, "one token, one owner");
    assert_ne!(enrol(&other, "w6"), owner);
}

#[test]
fn no_chosen_name_gives_ownership_of_other_workers() {
    let folder = Folder::new();
    let authority = new_authority(&folder);
    let (anna, lone) = (token_of(&authority, "anna", 1), token(&authority, Role::Worker, 1));
    let id = lone.id();
    let owner_of = |token: &Token, who: &str| {
        authority.enroll(token, &name(who), &request(), NOW_MS).expect("enrolled").identity.owner
    };
    let taken = [owner_of(&anna, "w1"), owner_of(&lone, "w2")];
    // A worker chooses its name, and the operator may choose the owner of its token.
    for (token, who) in [
        (token(&authority, Role::Worker, 1), "anna".to_owned()),
        (token(&authority, Role::Worker, 1), format!("token-{id}")),
        (token_of(&authority, &format!("token-{id}"), 1), "w3".to_owned()),
        (token_of(&authority, &id.to_string(), 1), "w4".to_owned()),
        (token_of(&authority, "w2", 1), "w5".to_owned()),
    ] {
        let owner = owner_of(&token, &who);
        assert!(!taken.contains(&owner), "{who} is of {owner}");
    }
    for owner in [format!("token:{id}"), format!("token:{}", id.to_string().to_uppercase())] {
        assert!(owner.parse::<Name>().is_err(), "{owner}");
    }
}

#[test]
fn an_owner_survives_lost_answers_renewals_and_the_removal_of_its_token() {
    let folder = Folder::new();
    let authority = new_authority(&folder);
    let enrolled =
        [(token_of(&authority, "anna", 1), "a"), (token(&authority, Role::Worker, 1), "b")];
    let mut held = enrolled.map(|(token, who)| {
        let asked = request();
        let lost = authority.enroll(&token, &name(who), &asked, NOW_MS).expect("enrolled");
        let found = authority.enroll(&token, &name(who), &asked, NOW_MS).expect("issued again");
        assert_eq!(found.identity.owner, lost.identity.owner);
        found
    });
    let owners = [0, 1].map(|which| held[which].identity.owner.clone());
    for days in [4, 8, 12, 16] {
        let now_ms = NOW_MS + days * DAY_MS;
        for (held, owner) in held.iter_mut().zip(&owners) {
            *held = authority.renew(&certificate(held), &request(), now_ms).expect("renewed");
            let known = authority.identify(&certificate(held), now_ms).expect("known");
            assert_eq!((&held.identity.owner, &known.owner), (owner, owner), "after {days} days");
        }
    }
    assert!(authority.tokens().expect("readable").is_empty(), "the tokens were removed");
    let reopened = Authority::open(&folder.path("authority")).expect("opens");
    for entry in reopened.certificates().expect("readable") {
        assert_eq!(entry.owner(), owners[usize::from(entry.name != name("a"))], "{}", entry.name);
    }
}

#[test]
fn a_name_enrolled_again_with_another_token_gets_its_owner() {
    let folder = Folder::new();
    let authority = new_authority(&folder);
    let first = authority.enroll(&token_of(&authority, "anna", 1), &name("w"), &request(), NOW_MS);
    assert_eq!(first.expect("enrolled").identity.owner.as_str(), "anna");
    let bert = token_of(&authority, "bert", 1);
    let refused = authority.enroll(&bert, &name("w"), &request(), NOW_MS);
    assert!(matches!(refused, Err(EnrollError::NameInUse(_))), "{refused:?}");
    authority.revoke(&name("w"), NOW_MS).expect("revoked");
    let second = authority.enroll(&bert, &name("w"), &request(), NOW_MS).expect("enrolled");
    assert_eq!(second.identity.owner.as_str(), "bert");
    assert_eq!(
        authority.identify(&certificate(&second), NOW_MS).expect("known").owner.as_str(),
        "bert"
    );
}

#[test]
fn an_authority_never_overwrites_files() {
    let folder = Folder::new();
    let authority = new_authority(&folder);
    let path = folder.path("authority");
    for names in [vec![], vec!["other.example.org".to_owned()]] {
        let refused = Authority::init(&path, &names, NOW_MS);
        assert!(matches!(refused, Err(AuthorityError::Exists(_))), "{refused:?}");
    }
    assert_eq!(Authority::open(&path).expect("intact").fingerprint(), authority.fingerprint());
    assert_eq!(fs::read_dir(&folder.0).expect("readable").count(), 1, "no file is left");

    for bad in ["", "a b", "*.example.org", "http://x", "ex ample", "-"] {
        let refused = Authority::init(&folder.path("new"), &[bad.to_owned()], NOW_MS);
        assert!(matches!(refused, Err(AuthorityError::Certificate(_))), "{bad}: {refused:?}");
    }
    assert!(!folder.path("new").exists());
    assert!(matches!(Authority::open(&folder.path("new")), Err(AuthorityError::Missing(_))));
}

/// Damages the file in several ways, and calls `check` for each with a description.
fn damaged(path: &Path, mut check: impl FnMut(String)) {
    let good = fs::read(path).expect("readable");
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        fs::write(path, bad).expect("writable");
        check(format!("{}: bit {} of byte {at} flipped", path.display(), at % 8));
    }
    for len in [0, 1, good.len() / 2, good.len() - 1] {
        fs::write(path, &good[..len]).expect("writable");
        check(format!("{}: cut to {len} bytes", path.display()));
    }
    fs::write(path, [good.as_slice(), b"\0"].concat()).expect("writable");
    check(format!("{}: a byte more", path.display()));
    fs::write(path, good).expect("writable");
}

#[test]
fn an_authority_with_a_damaged_file_is_refused_in_one_line() {
    let folder = Folder::new();
    let authority = new_authority(&folder);
    enrolled(&authority, "a", Role::Worker);
    let path = folder.path("authority");
    let register = fs::read(path.join("register")).expect("readable");
    for file in ["register", "authority.key", "authority.crt"] {
        let mut refused = 0;
        damaged(&path.join(file), |damage| match Authority::open(&path) {
            Err(error) => {
                assert_eq!(error.to_string().lines().count(), 1, "{damage}: {error}");
                assert!(error.to_string().contains(file), "{damage}: {error}");
                refused += 1;
            }
            // In PEM, a line feed may change into another blank; the registry has a checksum over
            // all its bytes.
            Ok(opened) => {
                assert_ne!(file, "register", "{damage}");
                assert_eq!(opened.fingerprint(), authority.fingerprint(), "{damage}");
                assert_eq!(opened.certificate(), authority.certificate(), "{damage}");
            }
        });
        assert!(refused > 100, "{file}: {refused}");
        Authority::open(&path).expect("intact");
    }

    // A running authority notices it, refuses everyone, and continues when the registry is
    // restored.
    let issued = enrolled(&authority, "b", Role::Worker);
    let good = fs::read(path.join("register")).expect("readable");
    fs::write(path.join("register"), &good[..good.len() - 9]).expect("writable");
    let refused = authority.identify(&certificate(&issued), NOW_MS);
    assert!(matches!(refused, Err(AccessError::Registry(_))), "{refused:?}");
    fs::write(path.join("register"), &good).expect("writable");
    authority.identify(&certificate(&issued), NOW_MS).expect("known");
    // An older registry does not contain the certificate.
    fs::write(path.join("register"), &register).expect("writable");
    assert!(matches!(authority.identify(&certificate(&issued), NOW_MS), Err(AccessError::Unknown)));
}

#[cfg(unix)]
#[test]
fn keys_and_the_registry_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let authority = new_authority(&folder);
    let path = folder.path("authority");
    let worker = folder.path("worker");
    let key = KeyRequest::for_enrolment(&worker, &name("a")).expect("a key");
    let mode = |path: &Path| fs::metadata(path).expect("it exists").permissions().mode() & 0o777;
    assert_eq!(mode(&worker.join("enrolment.key")), 0o600);
    let token = token(&authority, Role::Worker, 1);
    let issued = authority.enroll(&token, &name("a"), key.request(), NOW_MS).expect("enrolled");
    let answer = key.into_credentials(
        authority.fingerprint(),
        &issued.certificate_pem,
        &issued.authority_pem,
    );
    answer.expect("an answer").save(&worker).expect("saved");

    assert_eq!((mode(&path), mode(&worker)), (0o700, 0o700));
    for file in ["authority.key", "authority.crt", "register", "lock"] {
        assert_eq!(mode(&path.join(file)), 0o600, "{file}");
    }
    assert_eq!(mode(&worker.join("credentials.json")), 0o600);

    let set = |path: &Path, mode| {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("permitted")
    };
    for file in ["authority.key", "register"] {
        set(&path.join(file), 0o644);
        let error = Authority::open(&path).expect_err("refused").to_string();
        assert!(
            error.contains(file) && error.contains("mode 644") && error.contains("chmod 600"),
            "{error}"
        );
        // Container platforms give volumes a group of their own.
        set(&path.join(file), 0o660);
        Authority::open(&path).expect("opens");
        set(&path.join(file), 0o600);
    }
    set(&worker.join("credentials.json"), 0o604);
    assert!(matches!(Credentials::load(&worker), Err(CredentialsError::OpenToOthers { .. })));
}

#[test]
fn credentials_survive_on_disk_or_are_refused() {
    let folder = Folder::new();
    let authority = new_authority(&folder);
    let worker = folder.path("worker");
    assert!(matches!(Credentials::load(&worker), Err(CredentialsError::Missing(_))));

    // A worker that is killed before it has the answer asks again with the same key.
    let killed = KeyRequest::for_enrolment(&worker, &name("a")).expect("a key");
    let token = token(&authority, Role::Worker, 1);
    authority.enroll(&token, &name("a"), killed.request(), NOW_MS).expect("enrolled");
    drop(killed);
    let key = KeyRequest::for_enrolment(&worker, &name("a")).expect("the same key");
    let issued = authority.enroll(&token, &name("a"), key.request(), NOW_MS).expect("the same use");
    let answer = key.into_credentials(
        authority.fingerprint(),
        &issued.certificate_pem,
        &issued.authority_pem,
    );
    let credentials = answer.expect("an answer");
    credentials.save(&worker).expect("saved");
    assert!(!worker.join("enrolment.key").exists());

    let loaded = Credentials::load(&worker).expect("it exists");
    assert_eq!((loaded.name(), loaded.role()), (&name("a"), Role::Worker));
    assert_eq!(
        (loaded.authority(), loaded.not_after_ms()),
        (authority.fingerprint(), NOW_MS + 7 * DAY_MS)
    );
    for (at_ms, renewal) in [
        (NOW_MS, None),
        (NOW_MS + 3 * DAY_MS, None),
        (NOW_MS + 4 * DAY_MS, Some(Renewal::Due)),
        (NOW_MS + 400 * DAY_MS, Some(Renewal::Due)),
        (NOW_MS - 5 * MINUTE_MS, None),
        (NOW_MS - DAY_MS, Some(Renewal::ClockSetBack { by_ms: DAY_MS })),
        (0, Some(Renewal::ClockSetBack { by_ms: NOW_MS })),
    ] {
        assert_eq!(loaded.renewal(at_ms), renewal, "at {at_ms}");
    }
    assert!(!format!("{loaded:?}").contains("PRIVATE"));

    damaged(&worker.join("credentials.json"), |damage| match Credentials::load(&worker) {
        Err(error) => assert!(matches!(error, CredentialsError::Damaged(_)), "{damage}: {error}"),
        Ok(read) => {
            assert_eq!(der(read.certificate_pem()), der(loaded.certificate_pem()), "{damage}")
        }
    });
}

#[test]
fn an_answer_for_another_key_or_from_another_authority_is_refused() {
    let (folder, another_folder) = (Folder::new(), Folder::new());
    let (authority, another) = (new_authority(&folder), new_authority(&another_folder));
    let (issued, foreign) =
        (enrolled(&authority, "a", Role::Worker), enrolled(&another, "a", Role::Worker));
    let key = || KeyRequest::new(&name("a")).expect("a key");
    let token = token(&authority, Role::Worker, 1);
    let mine = key();
    let right = authority.enroll(&token, &name("b"), mine.request(), NOW_MS).expect("enrolled");
    let pin = authority.fingerprint();
    for (key, pin, certificate, ca) in [
        (key(), pin, &issued.certificate_pem, &issued.authority_pem),
        (key(), pin, &foreign.certificate_pem, &foreign.authority_pem),
        (key(), pin, &foreign.certificate_pem, &issued.authority_pem),
        (key(), pin, &String::new(), &String::new()),
        (mine, another.fingerprint(), &right.certificate_pem, &right.authority_pem),
    ] {
        assert!(matches!(
            key.into_credentials(pin, certificate, ca),
            Err(CredentialsError::WrongAnswer)
        ));
    }
}

#[test]
fn a_token_for_people_is_exchanged_for_a_session_that_expires() {
    let folder = Folder::new();
    let authority = new_authority(&folder);
    let (watcher, anna) = (name("watcher"), name("anna"));
    let sign_in =
        |role, who: Option<&Name>| authority.sign_in(&token(&authority, role, 1), who, NOW_MS);
    let (secret, session) = sign_in(Role::Viewer, Some(&watcher)).expect("signed in");
    assert_eq!((session.name, session.role), (watcher.clone(), Role::Viewer));
    let until =
        |secret, ms| authority.session(secret, NOW_MS + ms).map(|session| session.role).ok();
    assert_eq!(
        (until(&secret, 30 * DAY_MS), until(&secret, 30 * DAY_MS + 1)),
        (Some(Role::Viewer), None)
    );
    assert!(authority.session(&secret, NOW_MS - 1).is_err(), "before it was issued");
    let (operator, _) = sign_in(Role::Operator, None).expect("signed in");
    assert_eq!(
        (until(&operator, 12 * HOUR_MS), until(&operator, 12 * HOUR_MS + 1)),
        (Some(Role::Operator), None)
    );

    let refused = sign_in(Role::Worker, None);
    assert!(matches!(refused, Err(EnrollError::NotForPeople)), "{refused:?}");
    let refused = sign_in(Role::Viewer, Some(&watcher));
    assert!(matches!(refused, Err(EnrollError::NameInUse(_))), "{refused:?}");
    enrolled(&authority, "anna", Role::Operator);
    let refused = sign_in(Role::Operator, Some(&anna));
    assert!(
        matches!(refused, Err(EnrollError::NameInUse(_))),
        "a certificate has the name: {refused:?}"
    );
    let used = token(&authority, Role::Viewer, 1);
    authority.sign_in(&used, None, NOW_MS).expect("signed in");
    let refused = authority.sign_in(&used, None, NOW_MS);
    assert!(matches!(refused, Err(EnrollError::TokenUsed)), "{refused:?}");
    let late = authority.sign_in(&token(&authority, Role::Viewer, 1), None, NOW_MS + 2 * HOUR_MS);
    assert!(matches!(late, Err(EnrollError::TokenExpired)), "{late:?}");

    // Another process sees the session and its end.
    let other = Authority::open(&folder.path("authority")).expect("opens");
    assert!(other.session(&secret, NOW_MS).is_ok());
    assert_eq!(other.revoke(&watcher, NOW_MS).expect("revoked").sessions, 1);
    assert!(authority.session(&secret, NOW_MS).is_err());
    authority.sign_out(&operator, NOW_MS).expect("signed out");
    assert!(other.session(&operator, NOW_MS).is_err());
    let made_up = "a".repeat(52).parse().expect("a secret");
    assert!(authority.session(&made_up, NOW_MS).is_err());
}
