//! Campaigns whose units consist of column sets.

use crate::support;

use nqueens::cluster::protocol::v1::{self, Subproblems};
use nqueens::kernel::KernelKind;
use support::{Coordinator, Scratch, Worker, printed, run, submit_by};

#[test]
fn workers_count_a_board_by_column_sets_with_their_own_kernels() {
    let scratch = Scratch::new("sets");
    let coordinator = Coordinator::start(&scratch.path("data"), &["--sync", "1s", "--audit", "1"]);
    let (data, address) = (coordinator.data(), coordinator.address.to_string());
    let submit =
        ["submit", "count", "12", "--subproblems", "column-sets", "--data", data, "--json"];
    let submitted = printed(&submit);
    assert!(submitted.contains(r#""subproblems":"column-sets""#), "{submitted}");
    let folder = scratch.file("worker");
    let fixed = ["worker", "--device", "cpu", "--exit-when-idle", "--log-level", "error"];
    let worked = run(&[&fixed[..], &["--join", &address, "--data", &folder]].concat());
    assert_eq!(worked.status.code(), Some(0), "{worked:?}");
    let report = printed(&[&submit[..], &["--wait"]].concat());
    assert!(report.contains(r#""solutions":"14200""#), "{report}");
    let kernel = KernelKind::fastest_for_sets().name();
    let entries = printed(&["ledger", "export", &format!("{data}/ledger.db")]);
    assert!(entries.contains(&format!(r#""kernel":"{kernel}""#)), "{entries}");
}

/// A worker with the devices of the given ids, of which it counts on none.
async fn sync_with_devices(worker: &Worker, ids: &[&str]) {
    let mut request = worker.sync_request();
    request.devices = ids
        .iter()
        .map(|id| v1::Device { id: (*id).to_owned(), capacity: 1, ..v1::Device::default() })
        .collect();
    request.capacity = 0;
    worker.channel.work().sync(request).await.expect("answered");
}

#[tokio::test]
async fn a_coordinator_chooses_subproblems_by_the_devices_of_its_workers() {
    let scratch = Scratch::new("sets-chosen");
    let coordinator = Coordinator::start(&scratch.path("data"), &["--sync", "1s"]);
    let channel = coordinator.channel();
    let chosen = async |n| submit_by(&channel, n, Subproblems::Unspecified).await;
    // No worker is known, so CPUs are expected.
    assert_eq!(chosen(12).await.subproblems(), Subproblems::Prefixes);
    let of_cpus = chosen(18).await;
    assert_eq!((of_cpus.subproblems(), of_cpus.known), (Subproblems::ColumnSets, false));
    sync_with_devices(&Worker::new("with-gpu", coordinator.channel()), &["cpu", "vulkan:0"]).await;
    assert_eq!(chosen(19).await.subproblems(), Subproblems::Prefixes);
    // A job of the same board is not counted again by other subproblems.
    let again = chosen(18).await;
    assert_eq!((&again.job, again.known), (&of_cpus.job, true));
    // Unless that is what was asked for.
    let other = submit_by(&channel, 18, Subproblems::Prefixes).await;
    assert_eq!((other.subproblems(), other.known), (Subproblems::Prefixes, false));
    assert_ne!(other.job, of_cpus.job);
}

#[tokio::test]
async fn a_kind_of_subproblems_of_another_version_is_refused() {
    let scratch = Scratch::new("sets-unknown");
    let coordinator = Coordinator::start(&scratch.path("data"), &[]);
    let request = |piece: &str, subproblems| v1::SubmitRequest {
        piece: piece.to_owned(),
        n: 8,
        subproblems,
        ..v1::SubmitRequest::default()
    };
    let channel = coordinator.channel();
    for (piece, subproblems, reason) in
        [("queen", 77, "the kind of subproblems"), ("rook", 2, "column sets are for queens")]
    {
        let refused = channel.operations().submit(request(piece, subproblems)).await;
        let status = refused.expect_err("refused");
        assert_eq!(status.code(), tonic::Code::InvalidArgument, "{status}");
        assert!(status.message().contains(reason), "{status}");
    }
}
