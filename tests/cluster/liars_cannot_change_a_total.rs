//! Simulated campaigns with adversaries: however they lie, no total is wrong unless several owners
//! collude, and then no more often than documented.
//!
//! A failing case prints its cell and its seed; `NQUEENS_CELL='…' NQUEENS_SEED=n` replays it.
//! `NQUEENS_CAMPAIGNS=10000` runs as many campaigns of each cell as the table in docs/trust.md.

use crate::simulation;

use std::io::Write as _;

use nqueens::cluster::campaign::{JobState, Settings};
use simulation::seeds::seeds;
use simulation::{Crowd, Outcome, Scenario, Strategy, World, guests, of_each_seed};

fn scenario(seed: u64, crowd: Crowd, strategy: Strategy, published: bool) -> Scenario {
    let mut random = fastrand::Rng::with_seed(seed);
    Scenario {
        seed,
        units: 64,
        workers: crowd.workers(&mut random, strategy),
        settings: Settings {
            sync_ms: 1_000,
            lease_ms: 10_000,
            lease_s: 20.0,
            ..Settings::default()
        },
        published,
        arbiter_rate: 2.0,
        restarts: 2 * u32::from(seed.is_multiple_of(3)),
        weights: Vec::new(),
        most_s: 5_000.0,
    }
}

/// The outcome of the campaigns of a cell.
struct Cell {
    campaigns: u64,
    wrong: u64,
    unfinished: u64,
    /// The cost of all recounts, relative to that of counting.
    extra: f64,
    outcomes: Vec<Outcome>,
}

/// Runs a cell's campaigns and prints its row: name, campaigns, wrong totals, jobs that did not
/// finish, recounts.
fn cell(name: &str, usual: u64, make: impl Fn(u64) -> Scenario + Sync) -> Cell {
    let mut cell = Cell { campaigns: 0, wrong: 0, unfinished: 0, extra: 0.0, outcomes: Vec::new() };
    if std::env::var("NQUEENS_CELL").is_ok_and(|wanted| wanted != name) {
        return cell;
    }
    let seeds = seeds(usual);
    let run = |seed| {
        let scenario = make(seed);
        let units = scenario.units as f64;
        let mut world = World::new(scenario);
        let outcome = world.run();
        for worker in &outcome.quarantined {
            let strategy = world.worker_strategy(worker);
            assert_ne!(strategy, Strategy::Honest, "{name}: NQUEENS_SEED={seed}: {worker}");
        }
        let ended = outcome.state == JobState::Finished;
        let problem = match (ended, outcome.right) {
            (false, _) => Some(format!("did not finish: {}", world.describe())),
            (true, false) => Some("ended wrong".to_owned()),
            (true, true) => None,
        };
        let extra = (outcome.recounted + outcome.audited) / units;
        (outcome, extra, problem.map(|problem| format!("{name}: NQUEENS_SEED={seed} {problem}")))
    };
    for (outcome, extra, problem) in of_each_seed(&seeds, run) {
        cell.campaigns += 1;
        cell.unfinished += u64::from(outcome.state != JobState::Finished);
        cell.wrong += u64::from(outcome.state == JobState::Finished && !outcome.right);
        cell.extra += extra / seeds.len() as f64;
        // Where many wrong totals are expected, the first ones suffice.
        if let Some(problem) = problem.filter(|_| cell.wrong + cell.unfinished <= 3) {
            let _ = writeln!(std::io::stderr(), "{problem}");
        }
        cell.outcomes.push(outcome);
    }
    let Cell { campaigns, wrong, unfinished, extra, .. } = cell;
    let percent = 100.0 * extra;
    let _ = writeln!(
        std::io::stderr(),
        "| {name} | {campaigns} | {wrong} | {unfinished} | {percent:.0} % |"
    );
    cell
}

const fn crowd(honest: usize, liars: usize, workers_of_liar: usize, share: f64) -> Crowd {
    Crowd { honest, liars, workers_of_liar, share }
}

impl std::fmt::Display for Crowd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { honest, liars, workers_of_liar, share } = self;
        let share = 100.0 * share;
        write!(f, "{honest} honest, {liars} × {workers_of_liar} liars with {share:.0} %")
    }
}

#[test]
fn no_single_owner_can_make_a_total_wrong() {
    let crowds = [
        crowd(1, 1, 1, 0.5),
        crowd(2, 1, 1, 0.3),
        crowd(2, 1, 1, 0.6),
        // One token for many workers.
        crowd(2, 1, 6, 0.6),
        crowd(8, 1, 1, 0.1),
        crowd(49, 1, 3, 0.2),
    ];
    for strategy in Strategy::LIARS {
        for published in [true, false] {
            for crowd in crowds {
                let name = format!("{strategy:?}, {crowd}, published: {published}");
                let usual = if crowd.honest > 8 { 5 } else { 25 };
                let cell = cell(&name, usual, |seed| scenario(seed, crowd, strategy, published));
                assert_eq!((cell.wrong, cell.unfinished), (0, 0), "{name}");
            }
        }
    }
}

/// Creates three honest owners and a job of so many units.
fn honest(seed: u64, units: u64, published: bool, assurance: Option<f64>) -> Scenario {
    let mut scenario = scenario(seed, crowd(3, 0, 1, 0.0), Strategy::Honest, published);
    scenario.units = units;
    scenario.settings.assurance = assurance;
    scenario.most_s = 100.0 * units as f64;
    scenario
}

#[test]
fn checks_of_honest_owners_cost_what_is_documented() {
    let rows = [
        ("published", true, None, [(64, 0.10), (640, 0.06), (6400, 0.05)]),
        ("not published", false, None, [(64, 1.30), (640, 1.15), (6400, 1.10)]),
        ("assurance 0.1", false, Some(0.1), [(64, 0.40), (640, 0.25), (6400, 0.20)]),
        ("assurance 0.5", false, Some(0.5), [(64, 0.80), (640, 0.65), (6400, 0.60)]),
        ("assurance 0.999", true, Some(0.999), [(64, 1.30), (640, 1.15), (6400, 1.10)]),
    ];
    for (name, published, assurance, sizes) in rows {
        for (units, most) in sizes {
            let name = format!("{name}, {units} units");
            let count = if units > 1000 { 2 } else { 20 };
            let cell = cell(&name, count, |seed| honest(seed, units, published, assurance));
            assert_eq!((cell.wrong, cell.unfinished), (0, 0), "{name}");
            assert!(cell.extra <= most, "{name}: {}", cell.extra);
        }
    }
}

/// The groups of colluding owners: with few and with many tokens.
const COLLUDING: [Crowd; 4] =
    [crowd(1, 2, 1, 0.6), crowd(2, 2, 1, 0.4), crowd(4, 4, 1, 0.3), crowd(8, 12, 1, 0.6)];

#[test]
fn colluding_owners_cannot_make_a_published_total_wrong() {
    for strategy in [
        Strategy::Colluding,
        Strategy::ColludingPolling,
        Strategy::ColludingOnce,
        Strategy::Constant,
        Strategy::Late,
    ] {
        for crowd in COLLUDING {
            let name = format!("{strategy:?}, {crowd}, published: true");
            let cell = cell(&name, 25, |seed| scenario(seed, crowd, strategy, true));
            assert_eq!((cell.wrong, cell.unfinished), (0, 0), "{name}");
        }
    }
}

/// Creates a job that honest owners count together with guests, of which most lie and which have
/// nine tenths of the total rate.
fn mostly_lying_guests(seed: u64, owners: usize, strategy: Strategy, published: bool) -> Scenario {
    let mut scenario = scenario(seed, crowd(owners, 0, 1, 0.0), Strategy::Honest, published);
    if owners == 0 {
        scenario.workers.clear();
    }
    let rate = 9.0 * scenario.workers.iter().map(|worker| worker.rate).sum::<f64>().max(1.0);
    scenario.workers.extend(guests(8, strategy, 0.8 * rate));
    scenario.workers.extend(guests(2, Strategy::Honest, 0.2 * rate));
    scenario
}

#[test]
fn a_lying_majority_of_guests_cannot_make_a_total_wrong() {
    let colluding = [Strategy::ColludingOnce, Strategy::Honest];
    for strategy in Strategy::LIARS.into_iter().chain(colluding) {
        for (owners, published) in [0, 1, 2].into_iter().flat_map(|n| [(n, true), (n, false)]) {
            let name = format!("{strategy:?}, guests, {owners} owners, published: {published}");
            let make = |seed| mostly_lying_guests(seed, owners, strategy, published);
            let cell = cell(&name, 10, make);
            assert_eq!((cell.wrong, cell.unfinished), (0, 0), "{name}");
        }
    }
}

#[test]
fn guests_cannot_make_a_total_wrong_even_if_the_operator_asks_for_fewer_checks() {
    for strategy in [Strategy::Rare, Strategy::Colluding, Strategy::ColludingOnce] {
        let name = format!("{strategy:?}, guests, 2 owners, assurance 0");
        let cell = cell(&name, 25, |seed| {
            let mut scenario = mostly_lying_guests(seed, 2, strategy, false);
            scenario.settings.assurance = Some(0.0);
            scenario
        });
        assert_eq!((cell.wrong, cell.unfinished), (0, 0), "{name}");
    }
}

/// Returns the documented upper bound of the probability that one lie of colluding owners succeeds:
/// its checker is drawn among their other workers, and no audit sees it. Shares are those of the
/// counted units, or of workers as long as none has counted much.
fn success_probability(crowd: Crowd, settings: &Settings) -> f64 {
    let of = |share: f64| {
        let own = share / crowd.liars as f64;
        (share - own) / (1.0 - own)
    };
    let workers = (crowd.liars * crowd.workers_of_liar) as f64;
    of(crowd.share).max(of(workers / (workers + crowd.honest as f64))) * (1.0 - settings.audit)
}

#[test]
fn colluding_owners_succeed_no_more_often_than_documented() {
    for strategy in [Strategy::ColludingOnce, Strategy::Colluding, Strategy::ColludingPolling] {
        for crowd in COLLUDING {
            let name = format!("{strategy:?}, {crowd}, published: false");
            let cell = cell(&name, 50, |seed| scenario(seed, crowd, strategy, false));
            let success_probability = success_probability(crowd, &Settings::default());
            // A convicted liar takes all its results with it; the other lies may still succeed.
            let found = |&lies: &u64| 1.0 - success_probability.powi(lies as i32);
            let wrong = |outcome: &Outcome| 1.0 - outcome.lies.values().map(found).product::<f64>();
            let stated: f64 = cell.outcomes.iter().map(wrong).sum();
            let _ = writeln!(
                std::io::stderr(),
                "stated: {stated:.1} wrong, {success_probability:.3} for one lie"
            );
            assert_eq!(cell.unfinished, 0, "{name}");
            // Five standard deviations of so many draws.
            let most = stated + 5.0 * stated.max(1.0).sqrt();
            assert!(cell.wrong as f64 <= most, "{name}: {} wrong, {stated} stated", cell.wrong);
        }
    }
}

#[test]
fn a_single_owner_is_detected_as_often_as_its_report_states() {
    let lone = crowd(0, 1, 1, 1.0);
    for (published, assurance) in
        [(true, None), (false, None), (false, Some(0.5)), (false, Some(1.0))]
    {
        let name = format!("Rare, {lone}, published: {published}, assurance {assurance:?}");
        let cell = cell(&name, 50, |seed| {
            let mut scenario = scenario(seed, lone, Strategy::Rare, published);
            scenario.settings.assurance = assurance;
            scenario
        });
        // A convicted liar counts nothing more, and there is no other worker.
        let unfinished = cell.outcomes.iter().filter(|outcome| outcome.state != JobState::Finished);
        unfinished
            .for_each(|outcome| assert!(!outcome.quarantined.is_empty(), "{name}: {outcome:?}"));
        let finished =
            || cell.outcomes.iter().filter(|outcome| outcome.state == JobState::Finished);
        // The assurance in the reports of undetected campaigns holds for all campaigns.
        let missed = finished().map(|outcome| 1.0 - outcome.assurance).sum::<f64>()
            * cell.campaigns as f64
            / finished().count().max(1) as f64;
        let _ = writeln!(std::io::stderr(), "stated: at most {missed:.1} wrong");
        let most = if published { 0.0 } else { missed + 5.0 * missed.sqrt() };
        assert!(cell.wrong as f64 <= most, "{name}: {} wrong, {most} stated", cell.wrong);
    }
}
