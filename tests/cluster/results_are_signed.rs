//! A worker with a key signs its results, and the coordinator accepts nothing else from it.

use crate::support;

use nqueens::cluster::auth::SigningKey;
use nqueens::cluster::campaign::{Assignment, ResultSignature, UnitResult, possession_message};
use nqueens::cluster::protocol::v1::{self, Verdict};
use support::{Coordinator, Scratch, Worker, printed, solutions, submit};
use tonic::Code;

const FAST: [&str; 4] = ["--sync", "1s", "--lease", "5s"];

fn key() -> SigningKey {
    SigningKey::generate().expect("random bytes")
}

/// Returns the reasons for which workers are in quarantine, by name.
async fn quarantined(coordinator: &Coordinator) -> Vec<(String, String)> {
    let workers = coordinator.channel().operations().workers(v1::WorkersRequest {}).await;
    let workers = workers.expect("answered").into_inner().workers;
    let found = workers.into_iter().filter(|worker| !worker.quarantined.is_empty());
    found.map(|worker| (worker.name, worker.quarantined)).collect()
}

/// Lets a worker with a key submit a result that `forge` has changed. Returns the verdict.
async fn forged(
    coordinator: &Coordinator,
    name: &str,
    forge: impl FnOnce(&Worker, &Assignment, &mut UnitResult),
) -> Verdict {
    let mut worker = Worker::new(name, coordinator.channel());
    worker.key = Some(key());
    worker.sync().await.expect("answered");
    let lease = worker.held.first().expect("a lease").clone();
    let mut result = worker.count(&lease, lease.units.start);
    worker.sign(&lease, &mut result);
    forge(&worker, &lease, &mut result);
    worker.complete(&[result]).await.expect("answered")[0]
}

#[tokio::test]
async fn results_that_a_worker_has_not_signed_are_refused() {
    let scratch = Scratch::new("signed-results");
    let mut coordinator = Coordinator::start_quietly(&scratch.path("data"), &FAST);
    submit(&coordinator.channel(), 10, 0).await;
    let signature = |result: &UnitResult| result.signature.expect("signed");

    assert_eq!(forged(&coordinator, "honest", |_, _, _| ()).await, Verdict::Accepted);
    let verdict = forged(&coordinator, "unsigned", |_, _, result| result.signature = None).await;
    assert_eq!(verdict, Verdict::Refused);
    let verdict = forged(&coordinator, "flipped", |_, _, result| {
        let mut changed = signature(result);
        changed.signature[7] ^= 1;
        result.signature = Some(changed);
    });
    assert_eq!(verdict.await, Verdict::Refused);
    let verdict = forged(&coordinator, "stranger", |worker, lease, result| {
        let mut stranger = Worker::new(&worker.name, worker.channel.clone());
        stranger.key = Some(key());
        stranger.sign(lease, result);
    });
    assert_eq!(verdict.await, Verdict::Refused);
    let verdict = forged(&coordinator, "another-unit", |worker, lease, result| {
        let mut another = result.clone();
        another.unit.unit += 1;
        worker.sign(lease, &mut another);
        result.signature = another.signature;
    });
    assert_eq!(verdict.await, Verdict::Refused);
    let verdict = forged(&coordinator, "another-kind", |worker, lease, result| {
        let image = Assignment { mirrored: true, ..lease.clone() };
        worker.sign(&image, result);
    });
    assert_eq!(verdict.await, Verdict::Refused);
    let verdict = forged(&coordinator, "another-kernel", |_, _, result| {
        result.source.kernel = "generic".into();
    });
    assert_eq!(verdict.await, Verdict::Refused);

    let reasons = quarantined(&coordinator).await;
    assert_eq!(reasons.len(), 6, "{reasons:?}");
    for (name, reason) in reasons {
        let expected = if name == "unsigned" {
            "is not signed, although the worker has a key"
        } else {
            "has a signature that does not match"
        };
        assert!(reason.ends_with(expected), "{name}: {reason}");
    }

    // The key is in the ledger, so a restart changes nothing.
    let mut keyed = Worker::new("keyed", coordinator.channel());
    keyed.key = Some(key());
    keyed.sync().await.expect("answered");
    // Once something was acknowledged, the key is there, too.
    keyed.complete(&[]).await.expect("answered");
    coordinator.restart();
    keyed.key = None;
    keyed.channel = coordinator.channel();
    keyed.sync().await.expect("answered");
    let lease = keyed.held.first().expect("adopted").clone();
    let result = keyed.count(&lease, lease.units.start);
    assert_eq!(keyed.complete(&[result]).await.expect("answered"), [Verdict::Refused]);

    // Workers without a key count as before.
    let mut without = Worker::new("without-key", coordinator.channel());
    without.work_until_done().await;
    assert_eq!(solutions(&coordinator.last_job().await), 724);
    coordinator.process.kill();
    let report = printed(&["ledger", "check", coordinator.data()]);
    assert!(report.contains("residues and running totals agree"), "{report}");
}

#[tokio::test]
async fn a_key_is_accepted_only_from_whoever_has_its_private_part() {
    let scratch = Scratch::new("signed-keys");
    let coordinator = Coordinator::start_quietly(&scratch.path("data"), &FAST);
    submit(&coordinator.channel(), 10, 0).await;
    let mut worker = Worker::new("w", coordinator.channel());
    worker.key = Some(key());
    let refused = async |change: &dyn Fn(&mut v1::SyncRequest)| {
        let mut request = worker.sync_request();
        change(&mut request);
        let answer = worker.channel.work().sync(request).await;
        answer.expect_err("refused").code()
    };
    let other = key();
    // The key of another worker, whose signature is known: it states another name.
    let of_other: Vec<u8> = other.sign(&possession_message("other")).into();
    let borrowed = |request: &mut v1::SyncRequest| {
        request.result_key = other.public().into();
        request.key_signature.clone_from(&of_other);
    };
    assert_eq!(refused(&borrowed).await, Code::InvalidArgument);
    assert_eq!(refused(&|request| request.key_signature.clear()).await, Code::InvalidArgument);
    assert_eq!(refused(&|request| request.result_key.truncate(31)).await, Code::InvalidArgument);
    assert_eq!(refused(&|request| request.result_key = vec![0; 32]).await, Code::InvalidArgument);
    worker.channel.work().sync(worker.sync_request()).await.expect("its own key");
}

#[tokio::test]
async fn new_keys_cannot_fill_the_ledger() {
    let scratch = Scratch::new("signed-many-keys");
    let mut coordinator = Coordinator::start_quietly(&scratch.path("data"), &FAST);
    submit(&coordinator.channel(), 8, 0).await;
    let mut worker = Worker::new("w", coordinator.channel());
    for _ in 0..100 {
        worker.key = Some(key());
        worker.channel.work().sync(worker.sync_request()).await.expect("answered");
        // Written before results.
        worker.complete(&[]).await.expect("answered");
    }
    coordinator.process.terminate();
    coordinator.process.wait("end of the coordinator");
    let exported = printed(&["ledger", "export", coordinator.data()]);
    assert_eq!(exported.matches("\"worker_seen\"").count(), 64);
}

#[tokio::test]
async fn signatures_of_results_are_in_the_ledger() {
    let scratch = Scratch::new("signed-ledger");
    let mut coordinator = Coordinator::start_quietly(&scratch.path("data"), &FAST);
    submit(&coordinator.channel(), 9, 0).await;
    let mut worker = Worker::new("w", coordinator.channel());
    worker.key = Some(key());
    worker.work_until_done().await;
    assert_eq!(solutions(&coordinator.last_job().await), 352);
    coordinator.process.terminate();
    coordinator.process.wait("end of the coordinator");
    let exported = printed(&["ledger", "export", coordinator.data()]);
    let of_worker = exported.lines().filter(|line| line.contains("\"worker\":\"w\""));
    let results: Vec<&str> = of_worker.filter(|line| line.contains("unit_done")).collect();
    assert!(!results.is_empty());
    for line in results {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let signature = line["entry"]["unit_done"]["signature"].as_str().expect("signed");
        ResultSignature::try_from(signature.to_owned()).expect("a signature");
    }
}
