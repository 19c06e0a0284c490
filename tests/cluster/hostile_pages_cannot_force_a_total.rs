//! Hostile guests over HTTP: two networks that lie alike, beside an honest guest and an honest
//! worker. No job finishes with a wrong total, and nobody honest is accused.

use crate::page;
use crate::support;

use std::time::{Duration, Instant};

use nqueens::cluster::protocol::{Channel, v1};
use nqueens::kernel::gpu::layout::Slot;
use page::{Client, Page, PageResult};
use serde_json::Value;
use support::{Coordinator, PATIENCE, Scratch, Worker, solutions};

/// The flags of a coordinator behind a proxy, so that each guest can have a network of its own.
const FLAGS: [&str; 10] = [
    "--join-page",
    "127.0.0.1:0",
    "--guests",
    "100",
    "--join-url",
    "https://count.example.org",
    "--sync",
    "1s",
    "--lease",
    "3s",
];

/// Changes the results of the unit with this number, in the order in which a page counts them from
/// 0. Returns whether the page sends them.
type Lie = fn(&mut [PageResult], usize) -> bool;

/// Changes a count in each of its counters, so that they agree.
fn add(slot: &mut Slot, change: i32) {
    slot.hits = slot.hits.wrapping_add_signed(change);
    slot.turns = slot.turns.wrapping_add_signed(change);
    slot.shadow[0] = slot.shadow[0].wrapping_add_signed(change);
}

fn slots(results: &mut [PageResult]) -> impl Iterator<Item = &mut Slot> {
    results.iter_mut().flat_map(|result| &mut result.slots)
}

/// Each lie, and whether it is so frequent that it must be found.
const LIES: [(&str, bool, Lie); 9] = [
    ("each count is one too large", true, |results, _| {
        slots(results).for_each(|slot| add(slot, 1));
        true
    }),
    ("one false sub-range in all", false, |results, number| {
        let first = slots(results).next().filter(|_| number == 0);
        first.into_iter().for_each(|slot| add(slot, 1));
        true
    }),
    ("honest at first, then false", false, |results, number| {
        slots(results).take(usize::from(number >= 3)).for_each(|slot| add(slot, 5));
        true
    }),
    ("a solution moves from one sub-range to another", false, |results, _| {
        let found = slots(results).position(|slot| slot.hits > 0);
        let last = slots(results).count() - 1;
        if let Some(found) = found.filter(|&found| found != last) {
            slots(results).nth(found).into_iter().for_each(|slot| add(slot, -1));
            slots(results).nth(last).into_iter().for_each(|slot| add(slot, 1));
        }
        true
    }),
    ("there are no solutions", true, |results, _| {
        for slot in slots(results) {
            (slot.hits, slot.turns, slot.shadow[0]) = (0, slot.turns.max(1), 0);
            (slot.hits_high, slot.shadow[1], slot.shadow[2], slot.shadow[3]) = (0, 0, 0, 0);
        }
        true
    }),
    ("the greatest counts", true, |results, _| {
        for slot in slots(results) {
            (slot.hits, slot.hits_high) = (u32::MAX, u32::MAX);
            (slot.turns, slot.turns_high) = (u32::MAX, u32::MAX);
            slot.shadow = [u32::MAX, u32::MAX, 0, 0];
        }
        true
    }),
    ("a count that contradicts its residues", true, |results, _| {
        slots(results).next().into_iter().for_each(|slot| slot.hits += 1);
        true
    }),
    ("counters that do not balance", false, |results, _| {
        results.iter_mut().for_each(|result| result.counters.lower_taken ^= 1);
        true
    }),
    ("nothing is sent", false, |_, _| false),
];

/// Submits a board with a published number of completions, and one without.
async fn submit_both(channel: &Channel) -> [(String, u128); 2] {
    let placed = vec![v1::Square { row: 1, column: 1 }];
    let request =
        |n, placed| v1::SubmitRequest { piece: "queen".into(), n, placed, ..Default::default() };
    let submit = async |request| {
        let answer = channel.operations().submit(request).await.expect("submitted").into_inner();
        answer.job.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    // With a queen in the corner, 10 queens have 64 solutions (OEIS A000170 by the first column).
    [(submit(request(9, vec![])).await, 352), (submit(request(10, placed)).await, 64)]
}

async fn status(channel: &Channel, job: &str) -> v1::JobStatus {
    let request = v1::StatusRequest { job: job.to_owned() };
    let answer = channel.operations().status(request).await.expect("answered").into_inner();
    answer.jobs.into_iter().next().expect("a job")
}

/// A guest that changes what it counted.
struct Guest {
    page: Page,
    lie: Lie,
    counted: usize,
    /// The units that it holds and does not report.
    kept: Vec<Value>,
    /// The answers to its results.
    answers: Vec<String>,
}

impl Guest {
    fn open(data: &std::path::Path, network: u8, lie: Lie) -> Self {
        let address = format!("203.0.113.{network}");
        let client = Client::proxied(data, "count.example.org", &address);
        let page = Page::open(client, None).unwrap_or_else(|answer| panic!("{answer:?}"));
        Self {
            page: Page { patient: true, ..page },
            lie,
            counted: 0,
            kept: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Syncs, counts and reports the units that it holds.
    fn turn(&mut self) {
        self.page.sync(true);
        for unit in self.page.units() {
            if self.kept.contains(&unit) {
                return;
            }
            // Its lease may have ended.
            let Ok(mut results) = self.page.try_count(&unit) else { continue };
            let sent = (self.lie)(&mut results, self.counted);
            self.counted += 1;
            if !sent {
                // It continues to say that it counts them.
                self.kept = self.page.units();
                return;
            }
            let answer = self.page.result(&unit, &results);
            self.answers.push(String::from_utf8_lossy(&answer.bytes).into_owned());
        }
        self.page.held.clear();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn guests_that_lie_alike_cannot_force_a_total() {
    for (name, must_be_found, lie) in LIES {
        let scratch = Scratch::new("hostile-guests");
        let data = scratch.path("data");
        let coordinator = Coordinator::start_quietly(&data, &FLAGS);
        let channel = coordinator.channel();
        let jobs = submit_both(&channel).await;
        let mut liars = [1, 2].map(|network| Guest::open(&data, network, lie));
        let mut honest = Guest::open(&data, 3, |_, _| true);
        let mut worker = Worker::new("honest", channel.clone());
        let began = Instant::now();
        // The liars come first, so that they count much of it.
        for turn in 0.. {
            liars.iter_mut().for_each(Guest::turn);
            honest.turn();
            if turn >= 3 {
                worker.sync().await.expect("answered");
                worker.work(|_| ()).await.expect("answered");
            }
            let mut finished = 0;
            for (job, known) in &jobs {
                let status = status(&channel, job).await;
                if status.state() == v1::JobState::Finished {
                    assert_eq!(solutions(&status), *known, "{name}");
                    finished += 1;
                }
            }
            if finished == jobs.len() {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{name}: the jobs do not end");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(liars.iter().any(|liar| liar.counted > 0), "{name}: no lie was told");
        assert!(
            honest.answers.iter().all(|answer| answer.contains("accepted")),
            "{name}: {:?}",
            honest.answers
        );
        let workers = channel.operations().workers(v1::WorkersRequest {}).await;
        let workers = workers.expect("answered").into_inner().workers;
        let accused: Vec<&str> = workers
            .iter()
            .filter(|worker| !worker.quarantined.is_empty())
            .map(|worker| &worker.name[..])
            .collect();
        let is_liar = |name: &&str| liars.iter().any(|liar| liar.page.worker == **name);
        assert!(accused.iter().all(is_liar), "{name}: {accused:?}");
        assert!(!must_be_found || !accused.is_empty(), "{name}: no liar was found");
        let output = support::run(&["ledger", "check", data.to_str().expect("a name")]);
        assert!(output.status.success(), "{name}: {output:?}");
    }
}
