//! The page for visitors over plain HTTP: pages that count, and an attacker that sends anything.

use crate::page;
use crate::support;

use std::path::Path;

use nqueens::board::Piece;
use nqueens::cluster::auth::Role;
use nqueens::cluster::coordinator::now_ms;
use nqueens::cluster::protocol::{Channel, v1};
use nqueens::decomposition::{Decomposition, Job};
use nqueens::kernel::{KernelKind, count_range};
use page::{Client, Page, PageResult};
use serde_json::json;
use support::program::assert_refused;
use support::{Coordinator, Scratch, authority, eventually, solutions, submit};

/// The flags of a coordinator with a page for many guests behind a proxy on this machine, so that
/// tests can choose the address of a visitor.
const PROXIED: [&str; 10] = [
    "--join-page",
    "127.0.0.1:0",
    "--guests",
    "100",
    "--join-url",
    "https://count.example.org",
    "--sync",
    "1s",
    "--lease",
    "30s",
];
const DIRECT: [&str; 8] =
    ["--join-page", "127.0.0.1:0", "--guests", "3", "--sync", "1s", "--lease", "30s"];

/// Returns a client whose requests come through the proxy from this address.
fn from(data: &Path, last: u8) -> Client {
    Client::proxied(data, "count.example.org", &format!("198.51.100.9, 203.0.113.{last}"))
}

async fn job(channel: &Channel, name: &str) -> v1::JobStatus {
    let request = v1::StatusRequest { job: name.to_owned() };
    let status = channel.operations().status(request).await.expect("answered").into_inner();
    status.jobs.into_iter().next().expect("a job")
}

/// Counts with honest guests until a job is finished. Returns its status.
async fn count_with(pages: &mut [Page], channel: &Channel, name: &str) -> v1::JobStatus {
    let began = std::time::Instant::now();
    loop {
        let status = job(channel, name).await;
        if status.state() == v1::JobState::Finished {
            return status;
        }
        assert!(began.elapsed() < support::PATIENCE, "{status:?}");
        for page in &mut *pages {
            page.work(|_| ());
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn guests_count_a_job_that_the_arbiter_checks() {
    let scratch = Scratch::new("guests-count");
    let coordinator = Coordinator::start(&scratch.path("data"), &DIRECT);
    let channel = coordinator.channel();
    let published = submit(&channel, 10, 0).await;
    let request = v1::SubmitRequest {
        piece: "queen".into(),
        n: 9,
        placed: vec![v1::Square { row: 2, column: 3 }],
        ..v1::SubmitRequest::default()
    };
    let answer = channel.operations().submit(request).await.expect("submitted").into_inner();
    let completion: String = answer.job.iter().map(|byte| format!("{byte:02x}")).collect();
    let client = || Client::new(&scratch.path("data"));
    let mut pages = [Page::open(client(), None), Page::open(client(), None)]
        .map(|page| page.unwrap_or_else(|answer| panic!("{answer:?}")));
    assert_ne!(pages[0].worker, pages[1].worker);
    pages.iter_mut().for_each(|page| page.patient = true);

    let of_published = count_with(&mut pages, &channel, &published).await;
    assert_eq!(solutions(&of_published), 724);
    assert_eq!(of_published.guest_units, of_published.units);
    assert!(of_published.guest_units_rechecked > 0.0);
    let sources = of_published.sources.iter().filter(|source| source.units > 0);
    assert!(sources.clone().count() > 0);
    sources.for_each(|source| assert!(source.worker.starts_with("guest:"), "{source:?}"));

    // Without a published total, every unit is counted again as a whole.
    let of_completion = count_with(&mut pages, &channel, &completion).await;
    let text: Job = of_completion.text.parse().expect("a job");
    let decomposition = Decomposition::new(text);
    let mut kernel = KernelKind::Reference.build(Piece::Queen).expect("anywhere");
    let all = 0..decomposition.prefixes();
    let expected = count_range(&mut *kernel, &decomposition, all).expect("a count").solutions();
    assert_eq!(Ok(solutions(&of_completion)), expected);
    assert_eq!(of_completion.audited, of_completion.units);

    // The page shows what was counted and confirmed, soon after the last confirmation.
    eventually("confirmation of all units", || {
        let shown = pages[0].sync(false).expect();
        (shown["units"].as_u64() > Some(0) && shown["confirmed"] == shown["units"]).then_some(())
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_with_a_token_is_a_worker_of_the_owner_and_survives_a_restart() {
    let scratch = Scratch::new("page-with-a-token");
    let authority = authority(&scratch.path("data"));
    let mut coordinator = Coordinator::start(&scratch.path("data"), &PROXIED);
    let create = |role| {
        let owner = "anna".parse().expect("a name");
        let uses = 1.try_into().expect("one");
        let token = authority.create_token_for(Some(&owner), role, uses, 60_000, now_ms());
        token.expect("a token").to_string()
    };
    let client = from(&scratch.path("data"), 1);
    for bad in ["", "nqt1", &create(Role::Viewer), &create(Role::Operator)] {
        let answer = client.post("/api/session", None, &json!({ "token": bad }));
        assert_eq!(answer.code, 401, "{bad}: {answer:?}");
    }
    let token = create(Role::Worker);
    let opened = client.post("/api/session", None, &json!({ "token": token })).expect();
    assert_eq!((&opened["owner"], &opened["guest"]), (&json!("anna"), &json!(false)));
    let again = client.post("/api/session", None, &json!({ "token": token }));
    assert_eq!(again.code, 401, "the token has been used");

    // The session is valid after a restart, and from another address.
    let session = opened["session"].as_str().expect("a text").to_owned();
    let channel = coordinator.channel();
    submit(&channel, 9, 0).await;
    coordinator.restart();
    let sync = json!({ "boot": "7", "wants": true, "held": [] });
    let client = from(&scratch.path("data"), 77);
    let answer = client.post("/api/sync", Some(&session), &sync).expect();
    assert!(!answer["leases"].as_array().expect("leases").is_empty());
    let worker = opened["worker"].as_str().expect("a text");
    authority.revoke(&worker.parse().expect("a name"), now_ms()).expect("written");
    eventually("end of the session", || {
        let answer = client.post("/api/sync", Some(&session), &sync);
        (answer.code == 401).then_some(())
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_lies_is_shut_out_and_the_total_is_right() {
    let scratch = Scratch::new("lying-pages");
    let coordinator = Coordinator::start_quietly(&scratch.path("data"), &DIRECT);
    let channel = coordinator.channel();
    let name = submit(&channel, 10, 0).await;
    let mut liar = Page::open(Client::new(&scratch.path("data")), None).expect("a session");
    // A count that contradicts its residues is refused at once.
    let verdicts = liar.work(|results| results[0].slots[0].hits += 1);
    assert_eq!(verdicts.first().map(|verdict| &verdict[..]), Some("refused"), "{verdicts:?}");
    let shown = liar.sync(true).expect();
    assert!(!shown["quarantined"].as_str().expect("a text").is_empty() && liar.held.is_empty());
    // So is its network, whatever name it takes: here, this machine.
    let mut second = Page::open(Client::new(&scratch.path("data")), None).expect("a session");
    second.sync(true);
    assert!(second.held.is_empty());
    let mut worker = support::Worker::new("w", channel.clone());
    worker.work_until_done().await;
    assert_eq!(solutions(&job(&channel, &name).await), 724);
}

#[tokio::test(flavor = "multi_thread")]
async fn false_counts_that_agree_with_their_residues_are_found_by_the_checks() {
    let scratch = Scratch::new("consistent-lies");
    let coordinator = Coordinator::start_quietly(&scratch.path("data"), &DIRECT);
    let channel = coordinator.channel();
    let name = submit(&channel, 10, 0).await;
    let mut liar = Page::open(Client::new(&scratch.path("data")), None).expect("a session");
    // A lie in every slot is in every sub-range, too.
    let everywhere = |results: &mut Vec<PageResult>| {
        for slot in results.iter_mut().flat_map(|result| &mut result.slots) {
            slot.hits += 1;
            slot.shadow[0] += 1;
            slot.turns += 1;
        }
    };
    let verdicts = liar.work(everywhere);
    assert!(verdicts.iter().any(|verdict| verdict == "accepted"), "{verdicts:?}");
    eventually("quarantine", || {
        let shown = liar.sync(true).expect();
        let reason = shown["quarantined"].as_str().expect("a text");
        (!reason.is_empty()).then_some(())
    });
    let mut worker = support::Worker::new("w", channel.clone());
    worker.work_until_done().await;
    let status = job(&channel, &name).await;
    assert_eq!((solutions(&status), status.guest_units), (724, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn replays_and_units_of_others_are_refused() {
    let scratch = Scratch::new("replays");
    let coordinator = Coordinator::start_quietly(&scratch.path("data"), &DIRECT);
    let channel = coordinator.channel();
    let name = submit(&channel, 12, 0).await;
    let mut one = Page::open(Client::new(&scratch.path("data")), None).expect("a session");
    let mut other = Page::open(Client::new(&scratch.path("data")), None).expect("a session");
    one.sync(true);
    other.sync(true);
    let (own, theirs) = (one.units().remove(0), other.units().remove(0));
    assert_ne!(own, theirs);
    // Neither the tables nor the prefixes of another's unit are sent, nor are results for it taken.
    for path in ["/api/tables", "/api/unit", "/api/fail"] {
        let mut body = theirs.clone();
        if path == "/api/fail" {
            body["detail"] = "x".into();
        }
        assert_eq!(one.post(path, &body).code, 409, "{path}");
    }
    let results = one.count(&own);
    assert_eq!(one.result(&theirs, &results).code, 409);
    // A lease of another is not adopted.
    let stolen = Page { held: other.held.clone(), ..one.clone() };
    let kept = stolen.post("/api/sync", &stolen.sync_body(false)).expect();
    assert_eq!(kept["leases"], json!([]));
    let mut forged = one.held[0].clone();
    forged["attempt"] = "12345".into();
    let forged = Page { held: vec![forged], ..one.clone() };
    assert_eq!(forged.post("/api/sync", &forged.sync_body(false)).expect()["leases"], json!([]));
    // The page dropped its own lease with that sync, so it gets a new one.
    one.held.clear();
    one.sync(true);
    let unit = one.units().remove(0);
    let results = one.count(&unit);
    assert_eq!(one.result(&unit, &results).expect()["verdict"], "accepted");
    // A replay is refused, and so are the counts of one unit for another.
    assert_eq!(one.result(&unit, &results).code, 409);
    one.held.clear();
    one.sync(true);
    let next = one.units().remove(0);
    one.batches(&next).expect("batches");
    // The counts of one unit for another are a lie like any other: a check finds it.
    one.result(&next, &results);
    let mut worker = support::Worker::new("w", channel.clone());
    worker.work_until_done().await;
    assert_eq!(solutions(&job(&channel, &name).await), 14_200);
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_oversized_and_foreign_requests_are_refused() {
    let scratch = Scratch::new("malformed-pages");
    let coordinator = Coordinator::start_quietly(&scratch.path("data"), &DIRECT);
    submit(&coordinator.channel(), 10, 0).await;
    let client = Client::new(&scratch.path("data"));
    let mut page = Page::open(client.clone(), None).expect("a session");
    page.sync(true);
    let unit = page.units().remove(0);
    let origin = format!("http://{}", client.address);
    let bearer = format!("Bearer {}", page.session);
    let good =
        [("Origin", &origin[..]), ("Content-Type", "application/json"), ("Authorization", &bearer)];
    let send = |path: &str, headers: &[(&str, &str)], body: &[u8]| {
        client.request("POST", path, headers, body).map_or(0, |answer| answer.code)
    };
    let sync = page.sync_body(false).to_string();
    assert_eq!(send("/api/sync", &good, sync.as_bytes()), 200);

    // Other origins, other hosts, other types, no session. No answer allows another origin.
    for (name, value, code) in [
        ("Origin", "http://evil.example", 403),
        ("Origin", "null", 403),
        ("Content-Type", "text/plain", 415),
        ("Content-Type", "application/x-www-form-urlencoded", 415),
        ("Authorization", "Bearer guest.1.1.AAAA", 401),
        ("Authorization", "Basic x", 401),
        ("Authorization", "", 401),
    ] {
        let changed: Vec<(&str, &str)> = good
            .iter()
            .map(|&(known, own)| (known, if known == name { value } else { own }))
            .collect();
        assert_eq!(send("/api/sync", &changed, sync.as_bytes()), code, "{name}: {value}");
    }
    let mut foreign = good.to_vec();
    foreign.push(("Host", "evil.example"));
    assert_eq!(send("/api/sync", &foreign, sync.as_bytes()), 421);
    let mut cross = good.to_vec();
    cross.push(("Sec-Fetch-Site", "cross-site"));
    assert_eq!(send("/api/sync", &cross, sync.as_bytes()), 403);
    let preflight = client.request(
        "OPTIONS",
        "/api/sync",
        &[("Origin", "http://evil.example"), ("Access-Control-Request-Method", "POST")],
        b"",
    );
    let preflight = preflight.expect("an answer");
    assert!(preflight.code >= 400, "{preflight:?}");
    for answer in [preflight, client.get("/"), client.get("/api/campaign"), page.sync(true)] {
        let head = answer.head.to_ascii_lowercase();
        assert!(!head.contains("access-control"), "{head}");
        assert!(head.contains("content-security-policy: default-src 'none'"), "{head}");
        assert!(!head.contains("set-cookie"), "{head}");
    }

    // Bodies that are too large, or nonsense.
    let large = vec![b' '; 2 << 20];
    for path in ["/api/sync", "/api/session", "/api/result", "/api/unit", "/api/leave"] {
        let code = send(path, &good, &large);
        assert!(code == 413 || code == 0, "{path}: {code}");
        for nonsense in ["", "{", "[1]", "null", "{\"x\":1}", "\u{0}", &"[".repeat(10_000)] {
            let code = send(path, &good, nonsense.as_bytes());
            assert!((400..430).contains(&code), "{path} {nonsense:.20}: {code}");
        }
        // The rate limit is for networks, too.
        std::thread::sleep(std::time::Duration::from_millis(700));
    }
    let many = json!({ "boot": "1", "wants": true, "held": vec![page.held[0].clone(); 201] });
    assert_eq!(page.post("/api/sync", &many).code, 400);
    for wrong in [
        json!({ "attempt": unit["attempt"], "unit": "18446744073709551615" }),
        json!({ "attempt": unit["attempt"], "unit": "-1" }),
        json!({ "attempt": unit["attempt"], "unit": 0 }),
        json!({ "attempt": "x", "unit": "0" }),
    ] {
        let code = page.post("/api/unit", &wrong).code;
        assert!((400..410).contains(&code), "{wrong}: {code}");
    }
    // Results that are no results.
    page.batches(&unit).expect("batches");
    for batches in
        [json!([]), json!([{ "counters": "", "slots": "" }]), json!([{ "counters": "?" }])]
    {
        let body = json!({ "attempt": unit["attempt"], "unit": unit["unit"], "elapsed_s": 1.0, "batches": batches });
        let code = page.post("/api/result", &body).code;
        assert!((400..430).contains(&code), "{body}: {code}");
        page.sync(true);
    }
    // A unit is not sent again and again.
    page.sync(true);
    let unit = page.units().remove(0);
    let codes: Vec<u16> = (0..5).map(|_| page.post("/api/unit", &unit).code).collect();
    assert_eq!(codes, [200, 200, 200, 429, 429]);
}

#[tokio::test(flavor = "multi_thread")]
async fn guests_are_few_and_rate_limited() {
    let scratch = Scratch::new("rate-limits");
    let coordinator = Coordinator::start_quietly(&scratch.path("data"), &DIRECT);
    submit(&coordinator.channel(), 12, 0).await;
    let client = Client::new(&scratch.path("data"));
    let mut pages: Vec<Page> =
        (0..3).map(|_| Page::open(client.clone(), None).expect("a session")).collect();
    let refused = Page::open(client.clone(), None).expect_err("three are enough");
    assert_eq!(refused.code, 503);
    // All pages of a network together hold no more than a guest may.
    let held: u64 = pages
        .iter_mut()
        .map(|page| {
            page.sync(true);
            page.held.iter().map(|lease| lease["units"].as_u64().expect("a number")).sum::<u64>()
        })
        .sum();
    assert!((1..=8).contains(&held), "{held}");
    // Calls of one page are limited, and those of another are not affected.
    let codes: Vec<u16> = (0..400).map(|_| pages[0].sync(false).code).collect();
    assert!(codes.contains(&429), "{codes:?}");
    assert_eq!(pages[1].sync(false).code, 200);
    // So are attempts to open a session.
    let codes: Vec<u16> = (0..30)
        .map(|_| client.post("/api/session", None, &json!({ "token": "nqt1.x" })).code)
        .collect();
    assert!(codes.contains(&429), "{codes:?}");
    // A page that leaves gives its units back at once.
    let leaving = pages.pop().expect("a page");
    let body = json!({ "session": leaving.session, "boot": leaving.boot.to_string() });
    assert_eq!(client.post("/api/leave", None, &body).code, 200);
    assert!(
        leaving.units().is_empty() || leaving.post("/api/unit", &leaving.units()[0]).code == 409
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn guests_behind_a_proxy_are_told_apart_by_the_address_that_it_adds() {
    let scratch = Scratch::new("proxied-guests");
    let coordinator = Coordinator::start_quietly(&scratch.path("data"), &PROXIED);
    submit(&coordinator.channel(), 10, 0).await;
    let open = |last: u8, claimed: &str| {
        let addresses = format!("{claimed}203.0.113.{last}");
        let client = Client::proxied(&scratch.path("data"), "count.example.org", &addresses);
        client.post("/api/session", None, &json!({}))
    };
    let owner =
        |answer: page::Answer| answer.expect()["owner"].as_str().expect("a text").to_owned();
    let (one, same, other) =
        (owner(open(1, "")), owner(open(1, "192.0.2.7, ")), owner(open(2, "")));
    assert_eq!(one, same, "what the visitor claims is not believed");
    assert_ne!(one, other);
    // Without a proxy the header is ignored.
    let direct = Scratch::new("direct-guests");
    let _coordinator = Coordinator::start_quietly(&direct.path("data"), &DIRECT);
    let owner_of = |last: u8| {
        let headers = from(&direct.path("data"), last).headers;
        let client = Client { headers, ..Client::new(&direct.path("data")) };
        owner(client.post("/api/session", None, &json!({})))
    };
    assert_eq!(owner_of(1), owner_of(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn units_of_a_page_survive_a_restart_of_the_coordinator() {
    let scratch = Scratch::new("page-restart");
    let mut coordinator = Coordinator::start_quietly(&scratch.path("data"), &DIRECT);
    submit(&coordinator.channel(), 12, 0).await;
    let mut page = Page::open(Client::new(&scratch.path("data")), None).expect("a session");
    page.sync(true);
    let unit = page.units().remove(0);
    let results = page.count(&unit);
    coordinator.restart();
    page.client = Client::new(&scratch.path("data"));
    // The coordinator has forgotten what it sent; the lease is adopted by its grant.
    assert_eq!(page.result(&unit, &results).code, 409);
    let held = page.held.clone();
    page.sync(false).expect();
    assert_eq!(page.held, held);
    page.batches(&unit).expect("batches");
    assert_eq!(page.result(&unit, &results).expect()["verdict"], "accepted");
}

#[test]
fn the_page_needs_a_secure_place() {
    let scratch = Scratch::new("insecure-page");
    let data = &scratch.file("data")[..];
    let common = ["coordinator", "--data", data, "--listen", "127.0.0.1:0"];
    for (words, says) in [
        (&["--join-page", "0.0.0.0:0"][..], "needs TLS"),
        (&["--join-page", "0.0.0.0:0", "--join-url", "https://x.example"], "loopback"),
    ] {
        assert_refused(&[&common, words].concat(), 2, &[says]);
    }
    for (words, says) in [
        (&["--guests", "5"][..], "--join-page"),
        (&["--join-page", "127.0.0.1:0", "--guests", "-1"], "guests"),
        (&["--join-page", "127.0.0.1:0", "--join-url", "http://x.example"], "https://HOST"),
    ] {
        let output = support::run(&[&common, words].concat());
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && message.contains(says), "{message}");
    }
}
