//! A real coordinator in its own process: what it authorises and refuses, and that what it
//! acknowledged is durable.

use crate::support;

use std::time::Duration;

use nqueens::cluster::auth::Role;
use nqueens::cluster::protocol::{Channel, Security, peer, v1};
use nqueens::tally::{Parts, Residues};
use prost::Message;
use support::{
    Coordinator, PATIENCE, Scratch, Worker, authority, credentials, eventually, printed, run,
};
use support::{solutions, submit};
use tonic::Code;

const FAST: [&str; 4] = ["--sync", "1s", "--lease", "5s"];

/// Returns the result code of every call of the protocol, in a fixed order.
async fn result_codes(channel: &Channel) -> Vec<(&'static str, Code)> {
    fn code<T>(answer: Result<T, tonic::Status>) -> Code {
        answer.err().map_or(Code::Ok, |status| status.code())
    }
    let some = || "nobody".to_owned();
    let (mut work, mut operations, mut enrolment) =
        (channel.work(), channel.operations(), channel.enrolment());
    let sync = v1::SyncRequest { peer: peer(), ..Default::default() };
    let complete = v1::CompleteRequest { peer: peer(), ..Default::default() };
    let fail = v1::FailRequest { peer: peer(), job: vec![0; 16], ..Default::default() };
    let listen = v1::ListenRequest { peer: peer(), ..Default::default() };
    let submit = v1::SubmitRequest { piece: "queen".into(), n: 6, ..Default::default() };
    let state = v1::SetJobStateRequest { job: "0".into(), state: v1::JobState::Paused.into() };
    let renew = v1::RenewRequest { peer: peer(), request: Vec::new() };
    vec![
        ("sync", code(work.sync(sync).await)),
        ("complete", code(work.complete(complete).await)),
        ("fail", code(work.fail(fail).await)),
        ("listen", code(work.listen(listen).await)),
        ("status", code(operations.status(v1::StatusRequest::default()).await)),
        ("watch", code(operations.watch(v1::StatusRequest::default()).await)),
        ("workers", code(operations.workers(v1::WorkersRequest {}).await)),
        ("events", code(operations.events(v1::EventsRequest { after: 0 }).await)),
        (
            "unit map",
            code(operations.unit_map(v1::UnitMapRequest { job: some(), version: 0 }).await),
        ),
        (
            "history",
            code(operations.history(v1::HistoryRequest { job: some(), after_ms: 0 }).await),
        ),
        ("submit", code(operations.submit(submit).await)),
        ("set state", code(operations.set_job_state(state).await)),
        ("drain", code(operations.drain(v1::DrainRequest { worker: some() }).await)),
        ("release", code(operations.release(v1::ReleaseRequest { worker: some() }).await)),
        ("renew", code(enrolment.renew(renew).await)),
    ]
}

#[tokio::test]
async fn each_role_has_its_calls_and_unauthenticated_callers_have_none() {
    let scratch = Scratch::new("roles");
    let (data, other) = (scratch.path("data"), scratch.path("other"));
    let (authority, foreign) = (authority(&data), authority(&other));
    let coordinator = Coordinator::start(&data, &[]);
    let pin = authority.fingerprint();
    let channel = |credentials| {
        let security = Security::Tls(pin, Some(Box::new(credentials)));
        Channel::new(&coordinator.address, &security, PATIENCE).expect("a channel")
    };
    let (no, ok, gone, bad) =
        (Code::PermissionDenied, Code::Ok, Code::NotFound, Code::InvalidArgument);
    for (role, expected) in [
        (Role::Worker, [ok, ok, ok, ok, no, no, no, no, no, no, no, no, no, no, bad]),
        (Role::Viewer, [no, no, no, no, ok, ok, ok, ok, gone, gone, no, no, no, no, bad]),
        // A job whose name begins with 0 may exist by chance: then it is paused.
        (Role::Operator, [no, no, no, no, ok, ok, ok, ok, gone, gone, ok, gone, gone, gone, bad]),
    ] {
        let channel = channel(credentials(&authority, role.name(), role));
        for ((call, code), expected) in result_codes(&channel).await.into_iter().zip(expected) {
            assert!(
                code == expected || (call == "set state" && code == ok),
                "{role} {call}: {code:?}"
            );
        }
    }
    // Without a certificate, every call is refused in the same way; with a certificate of another
    // authority, the connection fails.
    let anonymous =
        Channel::new(&coordinator.address, &Security::Tls(pin, None), PATIENCE).expect("a channel");
    for (call, code) in result_codes(&anonymous).await {
        assert_eq!(code, Code::Unauthenticated, "{call}");
    }
    let foreign_worker = channel(credentials(&foreign, "w", Role::Worker));
    for (call, code) in result_codes(&foreign_worker).await {
        assert!(![ok, no, gone, bad].contains(&code), "{call}: {code:?}");
    }
    // Without TLS, the connection fails.
    let plain = Channel::new(&coordinator.address, &Security::Plain, PATIENCE).expect("a channel");
    assert!(result_codes(&plain).await.iter().all(|(_, code)| ![ok, no, gone, bad].contains(code)));
    // A revoked worker is refused from its next call on.
    let worker = channel(credentials(&authority, "w9", Role::Worker));
    assert_eq!(result_codes(&worker).await[0].1, ok);
    printed(&["revoke", "--data", coordinator.data(), "w9"]);
    assert_eq!(result_codes(&worker).await[0].1, Code::Unauthenticated);
}

#[tokio::test]
async fn the_name_in_the_certificate_overrides_the_name_in_a_message() {
    let scratch = Scratch::new("names");
    let data = scratch.path("data");
    let authority = authority(&data);
    let coordinator = Coordinator::start(&data, &[]);
    let security = Security::Tls(
        authority.fingerprint(),
        Some(Box::new(credentials(&authority, "w1", Role::Worker))),
    );
    let channel = Channel::new(&coordinator.address, &security, PATIENCE).expect("a channel");
    let mut worker = Worker::new("somebody-else", channel);
    worker.sync().await.expect("answered");
    let answer = coordinator.channel().operations().workers(v1::WorkersRequest {}).await;
    let workers = answer.expect("answered").into_inner().workers;
    assert_eq!(workers.iter().map(|w| &w.name[..]).collect::<Vec<_>>(), ["w1"]);
}

#[tokio::test]
async fn another_version_gets_an_error_that_says_what_to_install_and_unknown_fields_are_ignored() {
    let scratch = Scratch::new("versions");
    let coordinator = Coordinator::start(&scratch.path("data"), &[]);
    let worker = Worker::new("w", coordinator.channel());
    let newer = v1::Peer { protocol: 2, build: "7.0.0".into() };
    let request = v1::SyncRequest { peer: Some(newer), ..worker.sync_request() };
    let refused = coordinator.channel().work().sync(request).await.expect_err("another version");
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(
        refused
            .message()
            .contains(&format!("install nqueens {}", nqueens::cluster::protocol::BUILD)),
        "{refused:?}"
    );
    // A message of a later version: the same with one more field.
    let mut bytes = worker.sync_request().encode_to_vec();
    bytes.extend([0xc2, 0x3e, 3, b'n', b'e', b'w']);
    let tomorrow = v1::SyncRequest::decode(&bytes[..]).expect("a message");
    coordinator.channel().work().sync(tomorrow).await.expect("it is accepted");
}

#[tokio::test]
async fn messages_beyond_a_limit_are_refused_and_change_nothing() {
    let scratch = Scratch::new("limits");
    let coordinator = Coordinator::start(&scratch.path("data"), &[]);
    let channel = coordinator.channel();
    submit(&channel, 8, 0).await;
    let mut worker = Worker::new("w", channel.clone());
    worker.sync().await.expect("answered");
    let lease = worker.held[0].clone();
    let good = worker.count(&lease, lease.units.start);
    let refused = worker.complete(&vec![good.clone(); 1025]).await.expect_err("too many");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    let many = v1::SyncRequest { kernels: vec!["k".repeat(200); 20_000], ..worker.sync_request() };
    let refused = channel.work().sync(many).await.expect_err("too long");
    assert_eq!(refused.code(), Code::OutOfRange, "{refused:?}");
    let mut half = nqueens::cluster::protocol::messages::result(&good);
    half.tally = None;
    let request = v1::CompleteRequest { peer: peer(), worker: "w".into(), results: vec![half] };
    assert_eq!(
        channel.work().complete(request).await.expect_err("no tally").code(),
        Code::InvalidArgument
    );
    let request = v1::SubmitRequest { piece: "queen".into(), n: 33, ..Default::default() };
    assert_eq!(
        channel.operations().submit(request).await.expect_err("too large").code(),
        Code::InvalidArgument
    );
    assert_eq!(coordinator.last_job().await.done, 0);
}

#[tokio::test]
async fn an_excessive_caller_is_rate_limited() {
    let scratch = Scratch::new("quota");
    let coordinator = Coordinator::start(&scratch.path("data"), &[]);
    let (worker, channel) = (Worker::new("w", coordinator.channel()), coordinator.channel());
    let mut refused = 0;
    for _ in 0..1500 {
        let answer = channel.work().sync(worker.sync_request()).await;
        refused += u32::from(answer.is_err_and(|status| status.code() == Code::ResourceExhausted));
    }
    assert!(refused > 0);
    // Other callers are not slowed down.
    Worker::new("v", coordinator.channel()).sync().await.expect("answered");
}

#[tokio::test]
async fn acknowledged_results_survive_a_kill_and_a_lost_reply_changes_nothing() {
    let scratch = Scratch::new("kill");
    let mut coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    submit(&coordinator.channel(), 9, 0).await;
    let mut worker = Worker::new("w", coordinator.channel());
    let mut acknowledged = 0;
    while coordinator.last_job().await.done < coordinator.last_job().await.units {
        if worker.sync().await.expect("answered") == 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        }
        let lease = worker.held.remove(0);
        let results: Vec<_> = lease.units.clone().map(|unit| worker.count(&lease, unit)).collect();
        let before = coordinator.last_job().await.done;
        // The coordinator is killed right after its reply; the worker sends all results again.
        let first = worker.complete(&results).await.expect("answered");
        coordinator.restart();
        worker.channel = coordinator.channel();
        // Until the worker has synced, the new coordinator does not know its kernels, and refuses
        // its results.
        let early = worker.complete(&results).await.expect_err("it is not known");
        assert_eq!(early.code(), Code::Unavailable, "{early:?}");
        worker.held.insert(0, lease);
        worker.sync().await.expect("answered");
        let again = worker.complete(&results).await.expect("answered");
        for (first, again) in first.iter().zip(&again) {
            assert!(
                *first != v1::Verdict::Accepted || *again == v1::Verdict::Duplicate,
                "{first:?} {again:?}"
            );
        }
        let job = coordinator.last_job().await;
        assert!(job.done >= before);
        assert!(job.done >= acknowledged, "{} units of {acknowledged} are left", job.done);
        acknowledged = job.done;
    }
    assert_eq!(solutions(&coordinator.last_job().await), 352);
}

#[tokio::test]
async fn jobs_run_by_priority_then_age_and_operators_can_stop_them() {
    let scratch = Scratch::new("priority");
    let coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    let (channel, data) = (coordinator.channel(), coordinator.data());
    let old = submit(&channel, 8, 0).await;
    let young = submit(&channel, 9, 0).await;
    let urgent = submit(&channel, 10, 5).await;
    let mut worker = Worker::new("w", channel.clone());
    let first_job = async |worker: &mut Worker| {
        worker.boot += 1;
        worker.held.clear();
        worker.sync().await.expect("answered");
        worker.held.first().map(|lease| lease.job.to_string())
    };
    assert_eq!(first_job(&mut worker).await, Some(urgent.clone()));
    assert!(
        printed(&["pause", &urgent[..8], "--data", data]).contains("is paused; it was running")
    );
    assert_eq!(first_job(&mut worker).await, Some(old.clone()));
    assert!(printed(&["cancel", &old, "--data", data]).contains("is cancelled"));
    assert_eq!(first_job(&mut worker).await, Some(young.clone()));
    // A result that arrives after the job was cancelled changes nothing.
    assert!(
        printed(&["resume", &urgent[..8], "--data", data]).contains("is running; it was paused")
    );
    assert_eq!(first_job(&mut worker).await, Some(urgent));
    let refused = run(&["pause", &old, "--data", data]);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && message.lines().count() == 1, "{message}");
    // Submitting it again resumes it.
    assert_eq!(submit(&channel, 8, 0).await, old);
    let report = printed(&["status", &old, "--data", data, "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report).expect("an object");
    assert_eq!(report["jobs"][0]["state"], "running");
    // A drained worker gets no leases until it restarts.
    worker.sync().await.expect("answered");
    printed(&["drain", "w", "--data", data]);
    worker.held.clear();
    assert_eq!(worker.sync().await.expect("answered"), 0);
    worker.boot += 1;
    assert!(worker.sync().await.expect("answered") > 0);
}

#[tokio::test]
async fn a_drain_survives_a_restart_of_the_coordinator_until_the_worker_restarts() {
    let scratch = Scratch::new("drained");
    let mut coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    submit(&coordinator.channel(), 10, 0).await;
    let mut workers = ["weary", "other"].map(|name| Worker::new(name, coordinator.channel()));
    for worker in &mut workers {
        assert!(worker.sync().await.expect("answered") > 0);
        worker.held.clear();
    }
    let [mut drained, mut other] = workers;
    printed(&["drain", "weary", "--data", coordinator.data()]);
    assert_eq!(drained.sync().await.expect("answered"), 0);
    for _ in 0..2 {
        coordinator.restart();
        (drained.channel, other.channel) = (coordinator.channel(), coordinator.channel());
        assert_eq!(drained.sync().await.expect("answered"), 0);
        assert!(other.sync().await.expect("answered") > 0, "only that worker is drained");
        other.held.clear();
    }
    let shown = coordinator.channel().operations().workers(v1::WorkersRequest {}).await;
    let shown = shown.expect("answered").into_inner().workers;
    let draining: Vec<&str> = shown.iter().filter(|w| w.draining).map(|w| &w.name[..]).collect();
    assert_eq!(draining, ["weary"]);
    // Its restart ends the drain, whether or not the coordinator was running then.
    coordinator.restart();
    drained.channel = coordinator.channel();
    drained.boot = drained.boot.wrapping_add(1);
    assert!(drained.sync().await.expect("answered") > 0);
    drained.held.clear();
    coordinator.restart();
    drained.channel = coordinator.channel();
    assert!(drained.sync().await.expect("answered") > 0, "the drain ended with its restart");
}

#[tokio::test]
async fn a_unit_that_always_fails_is_set_aside_and_reported_and_the_rest_is_counted() {
    let scratch = Scratch::new("poison");
    let coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    let channel = coordinator.channel();
    let job = submit(&channel, 8, 0).await;
    let bytes: Vec<u8> =
        (0..16).map(|i| u8::from_str_radix(&job[2 * i..2 * i + 2], 16).expect("hex")).collect();
    let mut workers = [Worker::new("a", channel.clone()), Worker::new("b", channel.clone())];
    let fail = |worker: &str, attempt: u64| v1::FailRequest {
        peer: peer(),
        worker: worker.to_owned(),
        attempt,
        job: bytes.clone(),
        unit: 3,
        reason: v1::FailReason::Device.into(),
        detail: "it\nburns".into(),
    };
    let mut failures = 0;
    for turn in 0..100 {
        // A failure report of a worker without a lease of the unit is ignored.
        channel.work().fail(fail("a", 1)).await.expect("answered");
        channel.work().fail(fail("b", 2)).await.expect("answered");
        let worker = &mut workers[turn % 2];
        worker.held.clear();
        worker.sync().await.expect("answered");
        if let Some(lease) = worker.held.iter().find(|lease| lease.units.contains(&3)) {
            channel.work().fail(fail(&worker.name, lease.attempt)).await.expect("answered");
            failures += 1;
        }
        worker.held.clear();
        worker.sync().await.expect("answered");
        if coordinator.last_job().await.poisoned > 0 {
            break;
        }
    }
    assert_eq!(failures, 5);
    assert_eq!(coordinator.last_job().await.poisoned, 1);
    // Every other unit is counted.
    while coordinator.last_job().await.done + 1 < coordinator.last_job().await.units {
        for worker in &mut workers {
            worker.sync().await.expect("answered");
            worker.held.retain(|lease| !lease.units.contains(&3));
            worker.work(|_| ()).await.expect("answered");
        }
    }
    let report = printed(&["status", &job[..6], "--data", coordinator.data()]);
    assert!(
        report.contains("unit 3 is set aside: failed 5 times on 2 workers")
            && report.contains("it"),
        "{report}"
    );
    assert!(report.contains("nqueens resume"), "{report}");
    printed(&["resume", &job[..6], "--data", coordinator.data()]);
    let [a, b] = &mut workers;
    tokio::join!(a.work_until_done(), b.work_until_done());
    let job = coordinator.last_job().await;
    assert_eq!((solutions(&job), job.poisoned), (92, 0));
}

#[tokio::test]
async fn liars_are_quarantined_and_named_and_the_total_is_correct() {
    /// Adds completions that the result's own residues confirm.
    fn add_completions(completion: &mut nqueens::cluster::campaign::UnitResult, more: u64) {
        completion.parts.add(24, more, Residues::of(more.into()), 0u64).expect("small");
        completion.tally = completion.parts.total().expect("agrees");
        completion.sub_sums[0] += 24 * u128::from(more);
    }
    type Lie = fn(&mut nqueens::cluster::campaign::UnitResult);
    let lies: [(&str, Lie); 4] = [
        ("plus-one", |completion| add_completions(completion, 1)),
        ("zeros", |completion| {
            completion.parts = Parts::default();
            completion.tally = completion.parts.total().expect("nothing");
            completion.sub_sums.fill(0);
        }),
        ("one-in-ten", |completion| {
            if completion.unit.unit % 10 == 0 {
                add_completions(completion, 2);
            }
        }),
        ("wrong-residues", |completion| {
            completion.parts = Parts::default();
            completion.parts.add(24, 5u64, Residues::of(6), 0u64).expect("small");
        }),
    ];
    for (name, lie) in lies {
        let scratch = Scratch::new("liars");
        let coordinator = Coordinator::start(&scratch.path("data"), &FAST);
        let channel = coordinator.channel();
        submit(&channel, 9, 0).await;
        let (mut liar, mut honest) =
            (Worker::new(name, channel.clone()), Worker::new("honest", channel.clone()));
        let mut caught = false;
        loop {
            liar.sync().await.expect("answered");
            let verdicts = liar.work(lie).await.expect("answered");
            caught |= verdicts
                .iter()
                .any(|v| matches!(v, v1::Verdict::Refused | v1::Verdict::Quarantined));
            let running =
                channel.work().sync(honest.sync_request()).await.expect("answered").into_inner();
            if running.running_jobs == 0 {
                break;
            }
            honest.sync().await.expect("answered");
            honest.work(|_| ()).await.expect("answered");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let job = coordinator.last_job().await;
        assert_eq!(solutions(&job), 352, "{name}");
        let answer = channel
            .operations()
            .workers(v1::WorkersRequest {})
            .await
            .expect("answered")
            .into_inner();
        let quarantined: Vec<&str> = answer
            .workers
            .iter()
            .filter(|w| !w.quarantined.is_empty())
            .map(|w| &w.name[..])
            .collect();
        assert_eq!(quarantined, [name]);
        let report = printed(&["status", "--data", coordinator.data()]);
        assert!(report.contains(&format!("{name} is in quarantine: ")), "{report}");
        assert!(report.contains("352, agrees with OEIS A000170"), "{report}");
        // Its unconfirmed results were voided, and it gets no more leases.
        assert!(caught || liar.sync().await.expect("answered") == 0);
        printed(&["release", name, "--data", coordinator.data()]);
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_is_reported_acknowledges_nothing_and_does_not_stop_the_coordinator() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let scratch = Scratch::new("full");
    let mut coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    let channel = coordinator.channel();
    submit(&channel, 9, 0).await;
    let mut worker = Worker::new("w", channel.clone());
    worker.sync().await.expect("answered");
    let pid = Pid::from_raw(coordinator.process.0.id().try_into().expect("a pid"));
    let room = |bytes: Option<u64>| {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(pid, Resource::Fsize, limit).expect("permitted");
    };
    room(Some(1));
    let lease = worker.held[0].clone();
    let results: Vec<_> = lease.units.clone().map(|unit| worker.count(&lease, unit)).collect();
    let refused = worker.complete(&results).await.expect_err("no room");
    assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
    let report = printed(&["status", "--data", coordinator.data()]);
    assert!(report.contains("problem     nothing is acknowledged: ledger"), "{report}");
    assert_eq!(coordinator.last_job().await.done, 0);
    room(None);
    // The worker's outbox sends the same results again: now they are accepted, once.
    let mut verdicts = None;
    for _ in 0..100 {
        verdicts = worker.complete(&results).await.ok();
        if verdicts.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let verdicts = verdicts.expect("there is room");
    assert!(verdicts.iter().all(|&verdict| verdict == v1::Verdict::Accepted), "{verdicts:?}");
    assert!(!printed(&["status", "--data", coordinator.data()]).contains("trouble"));
    coordinator.restart();
    assert_eq!(coordinator.last_job().await.done, results.len() as u64);
}

#[cfg(unix)]
#[tokio::test]
async fn a_ledger_has_one_coordinator_and_a_damaged_one_is_refused_in_one_line() {
    let scratch = Scratch::new("damage");
    let data = scratch.path("data");
    let mut coordinator = Coordinator::start(&data, &FAST);
    submit(&coordinator.channel(), 8, 0).await;
    let mut worker = Worker::new("w", coordinator.channel());
    worker.sync().await.expect("answered");
    worker.work(|_| ()).await.expect("answered");
    let second = || {
        let output = run(&[
            "coordinator",
            "--listen",
            "127.0.0.1:0",
            "--data",
            data.to_str().expect("UTF-8"),
        ]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(message.lines().count(), 1, "{message}");
        (output.status.code(), message)
    };
    let (code, message) = second();
    assert!(code == Some(7) && message.contains("is in use by another process"), "{message}");
    // When it stops, the journal is merged into the file.
    coordinator.process.terminate();
    coordinator.process.wait("end of the coordinator");
    let ledger = data.join("ledger.db");
    printed(&["ledger", "check", ledger.to_str().expect("UTF-8")]);
    // With a snapshot, the damage would be found after the start.
    std::fs::remove_file(data.join("ledger.snapshot"))
        .expect("a coordinator that stops writes one");
    let good = std::fs::read(&ledger).expect("a file");
    let mut bad = good.clone();
    // In the middle of an entry, not in a free page.
    let word = b"unit_done";
    let at = bad.windows(word.len()).position(|bytes| bytes == word).expect("a unit that is done");
    bad[at + 40] ^= 1;
    for bytes in [&bad[..], &good[..good.len() / 2]] {
        std::fs::write(&ledger, bytes).expect("permitted");
        let (code, message) = second();
        assert!(code == Some(7) || code == Some(6), "{code:?} {message}");
    }
}

#[test]
fn a_coordinator_stops_on_request() {
    let scratch = Scratch::new("stop");
    let data = scratch.path("data");
    let mut coordinator = Coordinator::start(&data, &[]);
    #[cfg(unix)]
    {
        coordinator.process.terminate();
        assert_eq!(coordinator.process.wait("end of the coordinator"), 0);
        assert!(!data.join("address.json").exists());
    }
    let output = run(&["jobs", "--data", coordinator.data()]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(8) && message.lines().count() == 1, "{message}");
}

#[test]
fn metrics_are_served_to_prometheus() {
    use std::io::{Read, Write};
    let scratch = Scratch::new("metrics");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("bound").to_string();
    drop(listener);
    let _coordinator = Coordinator::start(&scratch.path("data"), &["--metrics", &at]);
    let text = eventually("metrics", || {
        let mut stream = std::net::TcpStream::connect(&at).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text)
    });
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("nqueens_ledger_ok 1"), "{text}");
}

#[tokio::test]
async fn a_worker_cannot_grant_itself_a_recount_of_its_own_results() {
    for lies in [false, true] {
        let scratch = Scratch::new("forged");
        let coordinator = Coordinator::start(&scratch.path("data"), &FAST);
        let channel = coordinator.channel();
        submit(&channel, 9, 0).await;
        let mut forger = Worker::new("forger", channel.clone());
        forger.kernels.push("another".into());
        let tamper = |result: &mut nqueens::cluster::campaign::UnitResult| {
            if lies {
                result.parts.add(24, 1u64, Residues::of(1), 0u64).expect("small");
                result.tally = result.parts.total().expect("agrees");
                result.sub_sums.clear();
            }
        };
        let mut leased = Vec::new();
        while forger.sync().await.expect("answered") > 0 {
            let leases = forger.held.clone();
            assert!(leases.iter().all(|lease| !lease.mirrored), "it is alone");
            forger.work(tamper).await.expect("answered");
            leased.extend(leases);
        }
        // It claims recount leases for these units, with old and new numbers, and agrees under
        // another kernel's name.
        let coming = leased.last().expect("a lease").attempt + 1;
        for attempt in [leased[0].attempt, coming, u64::MAX] {
            let forge = |lease: &nqueens::cluster::campaign::Assignment| {
                nqueens::cluster::campaign::Assignment { attempt, mirrored: true, ..lease.clone() }
            };
            forger.held = leased.iter().map(forge).collect();
            forger.sync().await.expect("answered");
            for lease in &leased {
                for unit in lease.units.clone() {
                    let mut again = forger.count(lease, unit);
                    again.attempt = attempt;
                    tamper(&mut again);
                    again.source.kernel = "another".into();
                    let verdicts = forger.complete(&[again]).await.expect("answered");
                    assert_ne!(
                        verdicts,
                        [v1::Verdict::Accepted],
                        "lies: {lies}, attempt {attempt}"
                    );
                }
            }
        }
        assert!(coordinator.last_job().await.done > 0);
        let its = |what: &str| -> u64 {
            let report = printed(&["status", "--data", coordinator.data(), "--json"]);
            let report: serde_json::Value = serde_json::from_str(&report).expect("an object");
            let by = report["jobs"][0]["by"].as_array().expect("a list");
            let of_forger = by.iter().filter(|source| source["worker"] == "forger");
            of_forger.map(|source| source[what].as_u64().expect("a number")).sum()
        };
        // The coordinator audits a new owner itself, and voids all results of a liar.
        if lies {
            eventually("end of a liar's results", || (its("units") == 0).then_some(()));
        } else {
            assert!(its("units") > 0);
        }
        assert_eq!(its("verified_of_others"), 0);
        let mut honest = Worker::new("honest", channel.clone());
        honest.work_until_done().await;
        assert_eq!(solutions(&coordinator.last_job().await), 352);
    }
}

#[tokio::test]
async fn a_listening_worker_is_notified_of_a_reserved_recount() {
    let scratch = Scratch::new("listens");
    // No worker syncs because of the time.
    let coordinator =
        Coordinator::start(&scratch.path("data"), &["--sync", "600s", "--lease", "1200s"]);
    let channel = coordinator.channel();
    // Far more units than this test counts.
    submit(&channel, 16, 0).await;
    let (mut one, mut two) =
        (Worker::new("one", channel.clone()), Worker::new("two", channel.clone()));
    assert!(one.sync().await.expect("answered") > 0 && two.sync().await.expect("answered") > 0);
    let listening = {
        let mut work = channel.work();
        // Longer than a call may wait: it returns when there is a recount, or reports that there is
        // none.
        let request = v1::ListenRequest { peer: peer(), worker: "two".into(), wait_ms: 600_000 };
        tokio::spawn(async move { work.listen(request).await.expect("answered").into_inner() })
    };
    // Only "two" and the coordinator can check what "one" counts; all units of a new owner are
    // checked.
    while !listening.is_finished() {
        one.held.truncate(1);
        one.held.iter_mut().for_each(|lease| lease.units.end = lease.units.start + 1);
        one.work(|_| {}).await.expect("answered");
        one.sync().await.expect("answered");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(listening.await.expect("no panic").kept);
}

#[tokio::test]
async fn an_impossibly_large_result_does_not_block_others() {
    let scratch = Scratch::new("huge");
    let coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    let channel = coordinator.channel();
    submit(&channel, 8, 0).await;
    let mut liar = Worker::new("liar", channel.clone());
    liar.sync().await.expect("answered");
    let verdicts = liar
        .work(|completion| {
            completion.parts.add(24, 0u64, Residues::of(0), u128::MAX / 2).expect("fits");
            completion.tally = completion.parts.total().expect("fits");
        })
        .await;
    assert!(verdicts.expect("answered").contains(&v1::Verdict::Refused));
    let [mut a, mut b] = ["a", "b"].map(|name| Worker::new(name, channel.clone()));
    tokio::join!(a.work_until_done(), b.work_until_done());
    assert_eq!(solutions(&coordinator.last_job().await), 92);
}

#[tokio::test]
async fn unit_maps_history_and_events_are_available_even_after_a_restart() {
    let scratch = Scratch::new("screens");
    let mut coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    let channel = coordinator.channel();
    let job = submit(&channel, 10, 0).await;
    let map = async |channel: &Channel, version| {
        let request = v1::UnitMapRequest { job: job.clone(), version };
        channel.operations().unit_map(request).await.expect("answered").into_inner()
    };
    let fresh = map(&channel, 0).await;
    assert_eq!((fresh.units_per_cell, fresh.done.len() as u64), (1, fresh.units));
    assert!(fresh.done.iter().chain(&fresh.leased).all(|&share| share == 0));
    let again = map(&channel, fresh.version).await;
    assert!(again.done.is_empty() && again.version == fresh.version, "nothing is sent twice");

    // One of several leases is counted; leased units are shown as such.
    let mut worker = Worker::new("w", coordinator.channel());
    worker.sync().await.expect("answered");
    let leased = map(&channel, fresh.version).await;
    let leased_units: u64 =
        worker.held.iter().map(|lease| lease.units.end - lease.units.start).sum();
    assert_eq!(leased.leased.iter().filter(|&&share| share == 255).count() as u64, leased_units);
    let counted: Vec<u64> = worker.held.iter().flat_map(|lease| lease.units.clone()).collect();
    worker.work(|_| ()).await.expect("answered");
    let request = v1::SetJobStateRequest { job: job.clone(), state: v1::JobState::Paused.into() };
    channel.operations().set_job_state(request).await.expect("paused");
    let before = map(&channel, 0).await;
    let done = |map: &v1::UnitMapResponse| -> Vec<u64> {
        (0..).zip(&map.done).filter(|(_, share)| **share == 255).map(|(unit, _)| unit).collect()
    };
    assert_eq!(done(&before), counted);

    let history = async |channel: &Channel| {
        let request = v1::HistoryRequest { job: job.clone(), after_ms: 0 };
        channel.operations().history(request).await.expect("answered").into_inner().points
    };
    let events = async |channel: &Channel, after| {
        let answer = channel.operations().events(v1::EventsRequest { after }).await;
        answer.expect("answered").into_inner().events
    };
    let kinds = |events: &[v1::Event]| events.iter().map(v1::Event::kind).collect::<Vec<_>>();
    use v1::EventKind::{Joined, Started, State, Submitted};
    let first = events(&channel, 0).await;
    assert_eq!(kinds(&first), [Started, Submitted, Joined, State]);
    assert!(first[3].text.ends_with(" paused by operator"), "{}", first[3].text);
    let last = first[3].number;
    assert!(events(&channel, last).await.is_empty());

    coordinator.restart();
    let channel = coordinator.channel();
    let after = map(&channel, before.version).await;
    assert_eq!(
        (done(&after), after.leased.iter().all(|&share| share == 0)),
        (counted.clone(), true)
    );
    let points = history(&channel).await;
    assert_eq!(points.last().expect("the past").done, counted.len() as u64);
    assert!(points.windows(2).all(|two| two[0].at_ms < two[1].at_ms && two[0].done <= two[1].done));
    let second = events(&channel, last).await;
    assert_eq!(kinds(&second), [Submitted, State, Started]);

    for (job, code) in [("", Code::Ok), ("xyz", Code::NotFound)] {
        let request = v1::UnitMapRequest { job: job.to_owned(), version: 0 };
        let answer = channel.operations().unit_map(request).await;
        assert_eq!(answer.err().map_or(Code::Ok, |status| status.code()), code, "'{job}'");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn on_a_full_disk_a_coordinator_starts_reads_and_reports_it_and_writes_once_there_is_space() {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    use std::process::{Command, Stdio};
    use support::Process;
    // After a kill, SQLite's journal exists; after a stop, it does not.
    for killed in [true, false] {
        let scratch = Scratch::new("full");
        let data = scratch.path("data");
        let authority = authority(&data);
        let mut coordinator = Coordinator::start(&data, &FAST);
        let job = submit(&coordinator.channel(), 8, 0).await;
        let held = Box::new(credentials(&authority, "w", Role::Worker));
        let security = Security::Tls(authority.fingerprint(), Some(held));
        let address = coordinator.address.clone();
        let worker_channel = || Channel::new(&address, &security, PATIENCE).expect("a channel");
        let mut worker = Worker::new("w", worker_channel());
        worker.sync().await.expect("answered");
        let lease = worker.held[0].clone();
        let done = [worker.count(&lease, lease.units.start)];
        assert_eq!(worker.complete(&done).await.expect("answered"), [v1::Verdict::Accepted]);
        match killed {
            true => coordinator.process.kill(),
            false => {
                coordinator.process.terminate();
                coordinator.process.wait("coordinator that stops");
            }
        }

        // No file may grow until the limit is lifted.
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; ulimit -S -f 0; exec \"$0\" \"$@\"", support::NQUEENS]);
        command
            .args(["coordinator", "--listen", &coordinator.address.to_string(), "--data"])
            .arg(&data);
        command
            .args(["--log-level", "error"])
            .args(FAST)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        coordinator.process = Process(command.stderr(Stdio::piped()).spawn().expect("a shell"));
        let channel = coordinator.channel();
        let status = async || channel.operations().status(v1::StatusRequest::default()).await;
        let began = std::time::Instant::now();
        let reported = loop {
            match status().await {
                Ok(reported) => break reported.into_inner(),
                Err(error) => assert!(began.elapsed() < PATIENCE, "killed {killed}: {error}"),
            }
            let ended = coordinator.process.0.try_wait().expect("our own child process");
            assert!(ended.is_none(), "killed {killed}: it ended with {ended:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        for what in ["ledger.db", "address.json"] {
            assert!(reported.trouble.contains(what), "killed {killed}: {}", reported.trouble);
        }
        assert_eq!((reported.jobs.len(), reported.jobs[0].done), (1, 1), "killed {killed}");
        let map = v1::UnitMapRequest { job: job.clone(), version: 0 };
        let map = channel.operations().unit_map(map).await.expect("answered").into_inner();
        assert_eq!(map.units, reported.jobs[0].units);
        worker.channel = worker_channel();
        let new = worker.count(&lease, lease.units.start + 1);
        worker.sync().await.expect("answered");
        let unwritten =
            worker.complete(std::slice::from_ref(&new)).await.expect_err("nothing is acknowledged");
        assert_eq!(unwritten.code(), Code::Unavailable, "{unwritten:?}");
        let more = v1::SubmitRequest { piece: "queen".into(), n: 9, ..Default::default() };
        let unwritten =
            channel.operations().submit(more).await.expect_err("nothing is acknowledged");
        assert_eq!(unwritten.code(), Code::Unavailable);

        let pid = Pid::from_raw(coordinator.process.0.id().try_into().expect("a pid"));
        let Rlimit { maximum, .. } = getrlimit(Resource::Fsize);
        let lifted = Rlimit { current: maximum, maximum };
        prlimit(pid, Resource::Fsize, lifted).expect("there is room again");
        let began = std::time::Instant::now();
        while !status().await.expect("answered").into_inner().trouble.is_empty() {
            assert!(began.elapsed() < PATIENCE, "killed {killed}: it still reports a problem");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let verdict = loop {
            match worker.complete(std::slice::from_ref(&new)).await {
                // After it has read its ledger again, it knows no workers.
                Err(status) if status.message().contains("sync first") => {
                    worker.sync().await.expect("answered")
                }
                answered => break answered.expect("answered"),
            };
        };
        assert_eq!(verdict, [v1::Verdict::Accepted]);
        assert_eq!(coordinator.last_job().await.done, 2);
        printed(&["status", "--data", coordinator.data()]);
        coordinator.process.kill();
        printed(&["ledger", "check", &scratch.file("data/ledger.db")]);
    }
}
