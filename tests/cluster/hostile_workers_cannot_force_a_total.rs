//! Hostile clients with valid worker tokens, against real coordinators. No job ever finishes with a
//! wrong total, every liar is named, and no honest worker is accused.

use crate::support;

use std::time::{Duration, Instant};

use nqueens::cluster::auth::{Authority, Credentials, KeyRequest, Name, Role};
use nqueens::cluster::campaign::{Assignment, SubRangeSet, UnitResult};
use nqueens::cluster::coordinator::now_ms;
use nqueens::cluster::protocol::v1::{JobState, Verdict};
use nqueens::cluster::protocol::{Channel, Security, v1};
use nqueens::tally::{Parts, Residues, Tally};
use support::seeds::seeds;
use support::{
    Coordinator, PATIENCE, Scratch, Worker, authority, printed, solutions, submit, submit_by,
};
use tonic::Code;

const FAST: [&str; 4] = ["--sync", "1s", "--lease", "5s"];

/// Adds completions to a result so that it remains consistent: to its first sub-range, if that was
/// counted. Returns whether it changed anything.
fn inflate(lease: &Assignment, result: &mut UnitResult, more: u64) -> bool {
    let asked = lease.sub_ranges.is_empty() || lease.sub_ranges.numbers().any(|number| number == 0);
    // Only weights that the unit has are accepted: units without orbits of eight are left
    // unchanged.
    if !asked || !result.parts.iter().any(|part| part.weight == 24) {
        return false;
    }
    result.parts.add(24, more, Residues::of(more.into()), 0u64).expect("small");
    result.tally = result.parts.total().expect("agrees");
    if let Some(sum) = result.sub_sums.first_mut() {
        *sum += 24 * u128::from(more);
    }
    true
}

/// Changes a result that was counted under a lease.
type Change<'a> = dyn FnMut(&Assignment, &mut UnitResult) + 'a;

/// A worker that changes what it counted.
struct Participant<'a> {
    worker: Worker,
    /// The number of turns it has for each turn of the others.
    turns: u32,
    change: Box<Change<'a>>,
    /// The leases that it has received.
    seen: Vec<Assignment>,
}

impl<'a> Participant<'a> {
    fn new(worker: Worker, change: impl FnMut(&Assignment, &mut UnitResult) + 'a) -> Self {
        Self { worker, turns: 1, change: Box::new(change), seen: Vec::new() }
    }

    fn honest(name: &str, channel: Channel) -> Self {
        Self::new(Worker::new(name, channel), |_, _| ())
    }

    /// Syncs, counts all held units and submits them. Returns the verdicts, or nothing if the
    /// worker was rate-limited.
    async fn turn(&mut self) -> Vec<Verdict> {
        let mut results = Vec::new();
        match self.worker.sync().await {
            Ok(_) => {}
            Err(status) if status.code() == Code::ResourceExhausted => return Vec::new(),
            Err(status) => panic!("{}: {status}", self.worker.name),
        }
        for lease in std::mem::take(&mut self.worker.held) {
            for unit in lease.units.clone() {
                let mut result = self.worker.count(&lease, unit);
                (self.change)(&lease, &mut result);
                results.push(result);
            }
            self.seen.push(lease);
        }
        if results.is_empty() {
            return Vec::new();
        }
        loop {
            match self.worker.complete(&results).await {
                Ok(verdicts) => return verdicts,
                Err(status) if status.code() == Code::ResourceExhausted => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(status) => panic!("{}: {status}", self.worker.name),
            }
        }
    }
}

fn is_right(job: &v1::JobStatus, known: u128) -> bool {
    let total = Tally::try_from(job.total.as_ref().expect("a total")).expect("a valid tally");
    job.done == job.units && total.solutions() == Ok(known)
}

/// Runs the workers until the job is finished, or disputed for so long that it will stay disputed.
async fn run_campaign(
    coordinator: &Coordinator,
    participants: &mut [Participant<'_>],
    known: u128,
) -> v1::JobStatus {
    let began = Instant::now();
    loop {
        for participant in &mut *participants {
            for _ in 0..participant.turns {
                participant.turn().await;
            }
        }
        let job = coordinator.last_job().await;
        let right = is_right(&job, known);
        match job.state() {
            JobState::Finished => {
                assert!(right, "finished and wrong: {:?}", job.total);
                return job;
            }
            JobState::Disputed if began.elapsed() > PATIENCE / 2 => return job,
            state => {
                let complete = job.done == job.units && job.checked == job.units;
                assert!(state == JobState::Disputed || right || !complete, "{job:?}");
            }
        }
        assert!(began.elapsed() < PATIENCE, "it does not end: {job:?}");
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
}

async fn workers(coordinator: &Coordinator) -> Vec<v1::WorkerStatus> {
    let answer = coordinator.channel().operations().workers(v1::WorkersRequest {}).await;
    answer.expect("answered").into_inner().workers
}

/// Returns the names of the quarantined workers.
async fn quarantined(coordinator: &Coordinator) -> Vec<String> {
    let workers = workers(coordinator).await;
    workers
        .into_iter()
        .filter(|worker| !worker.quarantined.is_empty())
        .map(|worker| worker.name)
        .collect()
}

/// Returns the size of the ledger with its journal in bytes.
fn ledger_bytes(coordinator: &Coordinator) -> u64 {
    let files = std::fs::read_dir(coordinator.data()).expect("a folder").flatten();
    let ledger = files.filter(|file| file.file_name().to_string_lossy().starts_with("ledger"));
    ledger.map(|file| file.metadata().map_or(0, |of| of.len())).sum()
}

/// Returns the credentials of workers that enrol with one token.
fn enrolled(authority: &Authority, owner: Option<&str>, names: &[&str]) -> Vec<Credentials> {
    let owner: Option<Name> = owner.map(|owner| owner.parse().expect("a name"));
    let uses = u32::try_from(names.len()).ok().and_then(std::num::NonZeroU32::new).expect("some");
    let token = authority.create_token_for(owner.as_ref(), Role::Worker, uses, 60_000, now_ms());
    let token = token.expect("a token");
    let enrol = |name: &&str| {
        let name: Name = name.parse().expect("a name");
        let key = KeyRequest::new(&name).expect("a key");
        let issued = authority.enroll(&token, &name, key.request(), now_ms()).expect("enrolled");
        let (mine, theirs) = (&issued.certificate_pem, &issued.authority_pem);
        key.into_credentials(authority.fingerprint(), mine, theirs).expect("an answer")
    };
    names.iter().map(enrol).collect()
}

fn channel(coordinator: &Coordinator, authority: &Authority, credentials: Credentials) -> Channel {
    let security = Security::Tls(authority.fingerprint(), Some(Box::new(credentials)));
    Channel::new(&coordinator.address, &security, PATIENCE).expect("a channel")
}

#[tokio::test]
async fn results_without_leases_are_refused_from_a_single_worker_after_a_restart() {
    let scratch = Scratch::new("hostile-alone");
    let mut coordinator = Coordinator::start_quietly(&scratch.path("data"), &FAST);
    submit(&coordinator.channel(), 11, 0).await;
    let mut first = Worker::new("first", coordinator.channel());
    first.sync().await.expect("answered");
    let others = first.held[0].clone();
    first.work(|_| ()).await.expect("answered");
    coordinator.restart();

    let mut liar = Worker::new("liar", coordinator.channel());
    liar.sync().await.expect("answered");
    // It may be asked for a recount too.
    let own = liar.held.iter().find(|lease| !lease.mirrored).expect("open units").clone();
    let before = coordinator.last_job().await;
    let never: Vec<u64> = (0..before.units)
        .filter(|unit| !liar.held.iter().any(|l| l.units.contains(unit)))
        .collect();
    assert!(never.len() > 20, "{never:?}");
    let mut forged_grant = own.grant.clone();
    // All units, under the lease number that was issued for some.
    forged_grant[..16].copy_from_slice(&[[0; 8], before.units.to_be_bytes()].concat());
    let claims = [
        (own.attempt, own.grant.clone()),
        (own.attempt, forged_grant),
        (own.attempt, Vec::new()),
        (others.attempt, others.grant.clone()),
        (others.attempt, Vec::new()),
        (0, Vec::new()),
        (u64::MAX, vec![0; 37]),
    ];
    for mirrored in [false, true] {
        let mut results = Vec::new();
        for &unit in &never {
            let lease = Assignment { units: unit..unit + 1, mirrored, ..own.clone() };
            let mut result = liar.count(&lease, unit);
            inflate(&lease, &mut result, 1);
            for (attempt, grant) in &claims {
                (result.attempt, result.grant) = (*attempt, grant.clone());
                if mirrored {
                    result.source.kernel = format!("phantom-{unit}");
                }
                results.push(result.clone());
            }
        }
        for some in results.chunks(1000) {
            let verdicts = liar.complete(some).await.expect("answered");
            assert!(verdicts.iter().all(|&verdict| verdict == Verdict::StaleJob), "{verdicts:?}");
        }
    }
    // It may submit its own units; counting them again under another name confirms nothing.
    let mut results = Vec::new();
    for unit in own.units.clone() {
        let mut result = liar.count(&own, unit);
        inflate(&own, &mut result, 1);
        results.push(result);
    }
    let verdicts = liar.complete(&results).await.expect("answered");
    assert!(verdicts.iter().all(|&verdict| verdict == Verdict::Accepted), "{verdicts:?}");
    for (number, result) in results.iter_mut().enumerate() {
        result.source.kernel = format!("phantom-{number}");
    }
    liar.kernels.extend(results.iter().map(|result| result.source.kernel.clone()));
    liar.sync().await.expect("answered");
    let verdicts = liar.complete(&results).await.expect("answered");
    // The coordinator may have detected it by now.
    let worth_nothing = [Verdict::Duplicate, Verdict::Quarantined, Verdict::StaleJob];
    assert!(verdicts.iter().all(|verdict| worth_nothing.contains(verdict)), "{verdicts:?}");
    let after = coordinator.last_job().await;
    assert!(after.done <= before.done + results.len() as u64);
    assert!(
        after.sources.iter().all(|source| source.worker != "liar" || source.confirmations == 0)
    );
    assert!(
        after.sources.iter().all(|source| !source.kernel.starts_with("phantom")),
        "{:?}",
        after.sources
    );

    let honest = ["a", "b"].map(|name| Participant::honest(name, coordinator.channel()));
    let mut participants = Vec::from(honest);
    let liar = Participant::new(liar, |lease, result| {
        inflate(lease, result, 1);
    });
    participants.push(liar);
    let job = run_campaign(&coordinator, &mut participants, 2680).await;
    assert_eq!(solutions(&job), 2680);
    assert_eq!(quarantined(&coordinator).await, ["liar"]);
}

#[tokio::test]
async fn two_of_three_owners_that_lie_alike_cannot_finish_a_published_total_wrong() {
    for seed in seeds(1) {
        two_of_three_lie_alike(seed).await;
    }
}

async fn two_of_three_lie_alike(seed: u64) {
    let scratch = Scratch::new("hostile-majority");
    let data = scratch.path("data");
    let authority = authority(&data);
    let coordinator = Coordinator::start_quietly(&data, &FAST);
    submit(&coordinator.channel(), 12, 0).await;
    let mut participants = Vec::new();
    for (owner, name) in [("mallory", "liar-1"), ("trudy", "liar-2"), ("anna", "honest")] {
        let credentials = enrolled(&authority, Some(owner), &[name]).remove(0);
        let worker = Worker::new(name, channel(&coordinator, &authority, credentials));
        let lies = name != "honest";
        let mut participant = Participant::new(worker, move |lease, result| {
            // About the same units in the same way, in first counts and in recounts.
            if lies && result.unit.unit % 3 != seed % 3 {
                inflate(lease, result, 1 + result.unit.unit % 2);
            }
        });
        participant.turns = if lies { 5 } else { 1 };
        participants.push(participant);
    }
    let job = run_campaign(&coordinator, &mut participants, 14200).await;
    assert!(
        job.state() == JobState::Disputed || is_right(&job, 14200),
        "NQUEENS_SEED={seed}: {job:?}"
    );
    let convicted = quarantined(&coordinator).await;
    assert!(!convicted.is_empty() && !convicted.contains(&"honest".to_owned()), "{convicted:?}");
}

#[tokio::test]
async fn a_worker_that_starts_to_lie_late_changes_no_total() {
    for seed in seeds(1) {
        one_of_three_lies_late(seed, v1::Subproblems::Prefixes).await;
    }
}

#[tokio::test]
async fn a_worker_that_lies_about_column_sets_changes_no_total() {
    for seed in seeds(1) {
        one_of_three_lies_late(seed, v1::Subproblems::ColumnSets).await;
    }
}

async fn one_of_three_lies_late(seed: u64, subproblems: v1::Subproblems) {
    let scratch = Scratch::new(&format!("hostile-late-{}", subproblems.as_str_name()));
    let coordinator = Coordinator::start_quietly(&scratch.path("data"), &FAST);
    submit_by(&coordinator.channel(), 12, subproblems).await;
    // It starts with the 4th to 8th of its own units, and lies one to three times.
    let (before, most) = (3 + seed % 5, 1 + seed % 3);
    let (mut honestly, mut lies) = (0, 0);
    let liar = Worker::new("liar", coordinator.channel());
    let liar = Participant::new(liar, |lease, result| {
        if lease.mirrored || lies == most {
            return;
        }
        honestly += 1;
        if honestly > before && inflate(lease, result, 1) {
            lies += 1;
        }
    });
    let mut participants = vec![
        liar,
        Participant::honest("a", coordinator.channel()),
        Participant::honest("b", coordinator.channel()),
    ];
    let job = run_campaign(&coordinator, &mut participants, 14200).await;
    drop(participants);
    assert!(lies > 0, "NQUEENS_SEED={seed}: it could not lie in {honestly} units");
    assert_eq!(solutions(&job), 14200, "NQUEENS_SEED={seed}");
    assert_eq!(quarantined(&coordinator).await, ["liar"], "NQUEENS_SEED={seed}");
}

#[tokio::test]
async fn invented_leases_do_not_block_other_workers() {
    let scratch = Scratch::new("hostile-claims");
    let coordinator = Coordinator::start_quietly(&scratch.path("data"), &FAST);
    let job = submit(&coordinator.channel(), 10, 0).await;
    let bytes: Vec<u8> =
        (0..16).map(|i| u8::from_str_radix(&job[2 * i..2 * i + 2], 16).expect("hex")).collect();
    let units = coordinator.last_job().await.units;
    let ghost = Worker::new("ghost", coordinator.channel());
    let claim = |number: u64| v1::Held {
        lease: Some(v1::Lease {
            attempt: match number % 3 {
                0 => number,
                1 => (now_ms() << 20) + number,
                _ => u64::MAX - number,
            },
            job: bytes.clone(),
            first_unit: if number.is_multiple_of(2) { 0 } else { number % units },
            units: if number.is_multiple_of(2) { units } else { 1 << 40 },
            mirrored: number.is_multiple_of(5),
            grant: vec![number as u8; if number.is_multiple_of(7) { 0 } else { 37 }],
            ..v1::Lease::default()
        }),
        left: units,
        unstarted: 0,
    };
    let held: Vec<v1::Held> = (0..4096).map(claim).collect();
    let claims =
        |capacity| v1::SyncRequest { capacity, held: held.clone(), ..ghost.sync_request() };
    let answer = ghost.channel.work().sync(claims(0)).await.expect("answered").into_inner();
    assert!(answer.desired.is_empty(), "{:?}", answer.desired);
    assert_eq!(answer.cancel.len(), held.len());
    assert_eq!(coordinator.last_job().await.open, units);
    assert!(workers(&coordinator).await.iter().all(|worker| worker.held == 0));

    // Other workers get leases at once while it continues to claim.
    let mut honest = Participant::honest("honest", coordinator.channel());
    assert!(!honest.turn().await.is_empty());
    // If it asks for work, it gets as much as any worker, and nothing of what it claims.
    let answer = ghost.channel.work().sync(claims(4)).await.expect("answered").into_inner();
    assert_eq!(answer.cancel.len(), held.len());
    let first = answer.desired.iter().filter(|lease| !lease.mirrored);
    let granted: u64 = first.map(|lease| lease.units).sum();
    assert!(granted <= 10, "a new owner has {granted} held units");
    printed(&["drain", "ghost", "--data", coordinator.data()]);
    let answer = ghost.channel.work().sync(claims(4)).await.expect("answered").into_inner();
    assert!(answer.desired.is_empty(), "{:?}", answer.desired);
    assert!(
        workers(&coordinator).await.iter().any(|worker| worker.name == "ghost" && worker.draining)
    );
    let mut participants = [honest];
    let job = run_campaign(&coordinator, &mut participants, 724).await;
    assert_eq!(solutions(&job), 724);
    assert!(quarantined(&coordinator).await.is_empty());
}

#[tokio::test]
async fn repeated_contradictions_of_a_worker_are_recorded_once() {
    let scratch = Scratch::new("hostile-flood");
    let coordinator = Coordinator::start_quietly(&scratch.path("data"), &FAST);
    submit(&coordinator.channel(), 10, 0).await;
    let mut flood = Worker::new("flood", coordinator.channel());
    flood.sync().await.expect("answered");
    let lease = flood.held[0].clone();
    let truth = flood.count(&lease, lease.units.start);
    let mut contradictions = vec![truth.clone()];
    for number in 1..1000 {
        let mut result = truth.clone();
        assert!(
            inflate(&lease, &mut result, 1 + number % 3),
            "no orbit of eight in {}",
            truth.unit
        );
        contradictions.push(result);
    }
    let before = ledger_bytes(&coordinator);
    let verdicts = flood.complete(&contradictions).await.expect("answered");
    assert_eq!(verdicts[0], Verdict::Accepted);
    let refused = verdicts.iter().filter(|&&verdict| verdict == Verdict::Refused).count();
    let ignored = verdicts.iter().filter(|&&verdict| verdict == Verdict::Quarantined).count();
    assert!(refused == 1 && refused + ignored > 900, "{refused} {ignored}");
    assert_eq!(quarantined(&coordinator).await, ["flood"]);

    let began = Instant::now();
    let (mut reported, mut slowest) = (0, Duration::ZERO);
    let mut honest = Participant::honest("honest", coordinator.channel());
    let mut worked = false;
    while began.elapsed() < Duration::from_secs(3) {
        let calls = async {
            match flood.complete(&contradictions).await {
                Ok(verdicts) => {
                    assert!(verdicts.iter().all(|&verdict| verdict == Verdict::Quarantined));
                    verdicts.len()
                }
                Err(status) => {
                    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
                    0
                }
            }
        };
        let asks = async {
            let asked = Instant::now();
            let verdicts = honest.turn().await;
            (asked.elapsed(), !verdicts.is_empty())
        };
        let (judged, (took, had_work)) = tokio::join!(calls, asks);
        reported += judged;
        slowest = slowest.max(took);
        worked |= had_work;
    }
    assert!(reported > 2000, "{reported} results were validated");
    assert!(worked && slowest < Duration::from_secs(20), "{worked} {slowest:?}");
    let grown = ledger_bytes(&coordinator).saturating_sub(before);
    assert!(grown < 1 << 20, "the ledger grew by {grown} bytes");
    let mut participants = [honest];
    let job = run_campaign(&coordinator, &mut participants, 724).await;
    assert_eq!(solutions(&job), 724);
    assert_eq!(quarantined(&coordinator).await, ["flood"]);
}

#[tokio::test]
async fn invented_kernel_and_device_names_do_not_accumulate() {
    let scratch = Scratch::new("hostile-names");
    let coordinator = Coordinator::start_quietly(&scratch.path("data"), &FAST);
    submit(&coordinator.channel(), 10, 0).await;
    let mut namer = Worker::new("namer", coordinator.channel());
    namer.sync().await.expect("answered");
    let lease = namer.held[0].clone();
    let truth = namer.count(&lease, lease.units.start);
    // Names that it never declared.
    for call in 0..4 {
        let results: Vec<UnitResult> = (0..1000)
            .map(|number| {
                let mut result = truth.clone();
                result.source.kernel = format!("kernel-{call}-{number}");
                result.source.device = format!("device-{call}-{number}");
                result
            })
            .collect();
        let verdicts = namer.complete(&results).await.expect("answered");
        assert!(verdicts.iter().all(|&verdict| verdict == Verdict::StaleJob), "{verdicts:?}");
    }
    assert!(coordinator.last_job().await.sources.is_empty());
    // Names that it declared: as many as allowed, different ones each time, for the same units.
    for round in 0..12 {
        namer.kernels =
            (0..64).map(|number| format!("{round}-{number}-{}", "k".repeat(200))).collect();
        let device = |number| v1::Device {
            id: format!("{round}-{number}-{}", "d".repeat(180)),
            name: "x".repeat(1000),
            ..v1::Device::default()
        };
        let mut request = namer.sync_request();
        request.devices = (0..64).map(device).collect();
        let devices: Vec<String> = request.devices.iter().map(|device| device.id.clone()).collect();
        namer.channel.work().sync(request).await.expect("answered");
        let mut results = Vec::new();
        for (kernel, device) in namer.kernels.iter().zip(&devices) {
            for lease in namer.held.clone() {
                let mut result = truth.clone();
                result.source.kernel.clone_from(kernel);
                result.source.device.clone_from(device);
                (result.attempt, result.grant) = (lease.attempt, lease.grant.clone());
                results.push(result);
            }
        }
        results.truncate(1000);
        namer.complete(&results).await.expect("answered");
    }
    // Its own units, each under a different name.
    namer.kernels = vec!["scalar".into()];
    namer.sync().await.expect("answered");
    let job = coordinator.last_job().await;
    // The coordinator may have recounted its unit.
    let own = job.sources.iter().filter(|source| source.worker == "namer");
    assert!(own.count() <= 1, "{:?}", job.sources);
    for words in [&["jobs"][..], &["status"], &["workers"]] {
        let arguments: Vec<&str> =
            words.iter().copied().chain(["--data", coordinator.data()]).collect();
        let shown = printed(&arguments);
        assert!(
            !shown.is_empty() && shown.len() < 200_000,
            "{words:?} prints {} bytes",
            shown.len()
        );
    }
    let mut participants = [
        Participant::honest("a", coordinator.channel()),
        Participant::honest("b", coordinator.channel()),
    ];
    let job = run_campaign(&coordinator, &mut participants, 724).await;
    assert_eq!(solutions(&job), 724);
    assert!(quarantined(&coordinator).await.is_empty(), "invented names are not lies");
}

#[tokio::test]
async fn results_that_would_overflow_the_total_are_refused() {
    let scratch = Scratch::new("hostile-overflow");
    let coordinator = Coordinator::start_quietly(&scratch.path("data"), &FAST);
    submit(&coordinator.channel(), 10, 0).await;
    let weighted = |weight: u32, completions: u128| {
        let mut parts = Parts::default();
        parts.add(weight, completions, Residues::of(completions), 1u64).expect("fits");
        parts
    };
    let huge = [
        ("exact", weighted(1, 1 << 121)),
        ("beyond", weighted(8, (1 << 118) + 1)),
        ("eighths", weighted(24, (1 << 121) / 24 + 1)),
        ("all", weighted(1, u128::MAX)),
        ("wraps", weighted(24, u128::MAX)),
    ];
    for (name, parts) in huge {
        let mut liar = Worker::new(name, coordinator.channel());
        liar.sync().await.expect("answered");
        let lease = liar.held[0].clone();
        let mut result = liar.count(&lease, lease.units.start);
        let thirds =
            parts.iter().next().map_or(0, |part| part.completions.wrapping_mul(part.weight.into()));
        result.tally = Tally::from_parts(thirds, Residues::of(thirds), 1);
        result.parts = parts;
        result.sub_sums = Vec::new();
        let verdicts = liar.complete(&[result]).await.expect("answered");
        assert_eq!(verdicts, [Verdict::Refused], "{name}");
        assert!(quarantined(&coordinator).await.contains(&name.to_owned()), "{name}");
        assert_eq!(coordinator.last_job().await.done, 0);
    }
    let mut participants = [
        Participant::honest("a", coordinator.channel()),
        Participant::honest("b", coordinator.channel()),
    ];
    let job = run_campaign(&coordinator, &mut participants, 724).await;
    assert_eq!(solutions(&job), 724);
    assert_eq!(quarantined(&coordinator).await.len(), 5);
}

#[tokio::test]
async fn wrong_sub_range_sums_with_a_correct_total_are_detected() {
    let scratch = Scratch::new("hostile-sums");
    let coordinator = Coordinator::start_quietly(&scratch.path("data"), &FAST);
    submit(&coordinator.channel(), 11, 0).await;
    let mut shifted = 0;
    let liar = Participant::new(Worker::new("liar", coordinator.channel()), |lease, result| {
        if lease.mirrored {
            return;
        }
        // Moves one completion within each pair of sub-ranges, so that the total stays correct.
        for pair in result.sub_sums.chunks_exact_mut(2) {
            if pair[1] > 0 {
                (pair[0], pair[1]) = (pair[0] + 1, pair[1] - 1);
                shifted += 1;
            }
        }
    });
    let mut participants = [liar, Participant::honest("honest", coordinator.channel())];
    let job = run_campaign(&coordinator, &mut participants, 2680).await;
    drop(participants);
    assert!(shifted > 0, "it could not lie");
    assert_eq!(solutions(&job), 2680);
    assert_eq!(quarantined(&coordinator).await, ["liar"]);
}

#[tokio::test]
async fn workers_of_an_earlier_version_finish_their_job_and_are_not_accused() {
    for newer in [0, 1] {
        let scratch = Scratch::new("hostile-old");
        let coordinator = Coordinator::start_quietly(&scratch.path("data"), &FAST);
        submit(&coordinator.channel(), 10, 0).await;
        let mut old = [
            Worker::new("old-1", coordinator.channel()),
            Worker::new("old-2", coordinator.channel()),
        ];
        let mut new: Vec<Participant<'_>> =
            (0..newer).map(|_| Participant::honest("new", coordinator.channel())).collect();
        let (began, mut spots) = (Instant::now(), 0);
        while coordinator.last_job().await.state() != JobState::Finished {
            assert!(began.elapsed() < PATIENCE, "{:?}", coordinator.last_job().await);
            for worker in &mut old {
                // It reports its held leases as it knows them: without grants and sub-ranges.
                worker.sync().await.expect("answered");
                for lease in &mut worker.held {
                    spots += u32::from(!lease.sub_ranges.is_empty());
                    (lease.grant, lease.sub_ranges) = (Vec::new(), SubRangeSet::default());
                }
                let held = worker.held.clone();
                worker.channel.work().sync(worker.sync_request()).await.expect("answered");
                worker.held = held;
                worker.work(|result| result.sub_sums.clear()).await.expect("answered");
            }
            for participant in &mut new {
                participant.turn().await;
            }
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
        let job = coordinator.last_job().await;
        assert_eq!(solutions(&job), 724);
        assert!(quarantined(&coordinator).await.is_empty(), "{:?}", job.notes);
        assert!(job.sources.iter().any(|source| source.worker == "old-1" && source.units > 0));
        assert!(newer == 0 || spots > 0, "no recount of sub-ranges went to an old worker");
    }
}

#[tokio::test]
async fn an_owner_never_checks_itself() {
    let scratch = Scratch::new("hostile-owner");
    let data = scratch.path("data");
    let authority = authority(&data);
    let coordinator = Coordinator::start_quietly(&data, &FAST);
    submit(&coordinator.channel(), 10, 0).await;
    let credentials = enrolled(&authority, None, &["one", "two"]);
    let mut participants: Vec<Participant<'_>> = credentials
        .into_iter()
        .zip(["one", "two"])
        .map(|(credentials, name)| {
            Participant::honest(name, channel(&coordinator, &authority, credentials))
        })
        .collect();
    let job = run_campaign(&coordinator, &mut participants, 724).await;
    assert_eq!(solutions(&job), 724);
    assert!(participants.iter().all(|participant| !participant.seen.is_empty()));
    let mirrored: Vec<&Assignment> = participants
        .iter()
        .flat_map(|participant| &participant.seen)
        .filter(|lease| lease.mirrored)
        .collect();
    assert!(mirrored.is_empty(), "{mirrored:?}");
    assert_eq!((job.checked, job.self_checked), (job.audited, 0));
    let of_workers = job.sources.iter().filter(|source| !source.worker.starts_with('('));
    assert_eq!(of_workers.map(|source| source.confirmations).sum::<u64>(), 0);
    assert!(job.spot_checked + job.audited >= 10, "the coordinator checks who is new: {job:?}");
}
