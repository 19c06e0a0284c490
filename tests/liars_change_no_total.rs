//! Campaigns with adversaries, simulated: whoever lies, and however, no total is wrong unless several owners lie together,
//! and then no more often than is stated.
//!
//! A failing case prints its cell and its seed; `NQUEENS_CELL='…' NQUEENS_SEED=n` replays it. `NQUEENS_CAMPAIGNS=10000` runs as many of each cell as the
//! table in docs/trust.md.

mod simulation;

use std::io::Write as _;

use nqueens::campaign::{JobState, Settings};
use simulation::{Outcome, Scenario, Strategy, World, crowd};

fn campaigns(usual: u64) -> Vec<u64> {
    let variable = |name| std::env::var(name).ok().and_then(|value| value.parse().ok());
    match (variable("NQUEENS_SEED"), variable("NQUEENS_CAMPAIGNS")) {
        (Some(seed), _) => vec![seed],
        (None, count) => (0..count.unwrap_or(usual)).collect(),
    }
}

fn scenario(
    seed: u64,
    honest: usize,
    liars: usize,
    share: f64,
    strategy: Strategy,
    published: bool,
) -> Scenario {
    let mut random = fastrand::Rng::with_seed(seed);
    Scenario {
        seed,
        units: 64,
        workers: crowd(&mut random, honest, liars, share, strategy),
        settings: Settings { sync_ms: 1_000, lease_ms: 10_000, lease_s: 20.0, ..Settings::default() },
        published,
        arbiter_rate: 2.0,
        restarts: 2 * u32::from(seed.is_multiple_of(3)),
        weights: Vec::new(),
        most_s: 5_000.0,
    }
}

struct Cell {
    wrong: u64,
    unfinished: u64,
    extra: f64,
    campaigns: u64,
}

fn run(scenario: Scenario) -> (Outcome, World) {
    let mut world = World::new(scenario);
    let outcome = world.run();
    (outcome, world)
}

fn cell(name: &str, usual: u64, make: impl Fn(u64) -> Scenario) -> Cell {
    let mut cell = Cell { wrong: 0, unfinished: 0, extra: 0.0, campaigns: 0 };
    if std::env::var("NQUEENS_CELL").is_ok_and(|wanted| wanted != name) {
        return cell;
    }
    for seed in campaigns(usual) {
        let scenario = make(seed);
        let units = scenario.units as f64;
        let (outcome, world) = run(scenario);
        cell.campaigns += 1;
        let finished = outcome.state == JobState::Finished;
        cell.unfinished += u64::from(!finished);
        if !finished {
            let _ =
                writeln!(std::io::stderr(), "{name}: NQUEENS_SEED={seed} did not end: {}", world.describe());
        }
        if finished && !outcome.right {
            cell.wrong += 1;
            let _ = writeln!(std::io::stderr(), "{name}: NQUEENS_SEED={seed} ended wrong");
        }
        for worker in &outcome.quarantined {
            assert_ne!(
                world.worker_strategy(worker),
                Strategy::Honest,
                "{name}: NQUEENS_SEED={seed}: {worker}"
            );
        }
        cell.extra += (outcome.recounted + outcome.audited) / units;
    }
    let _ = writeln!(
        std::io::stderr(),
        "| {name} | {} | {} | {} | {:.0} % |",
        cell.campaigns,
        cell.wrong,
        cell.unfinished,
        100.0 * cell.extra / cell.campaigns as f64
    );
    cell
}

#[test]
fn no_strategy_of_a_single_owner_makes_a_total_wrong() {
    for strategy in Strategy::LIARS {
        for published in [true, false] {
            for (honest, share) in [(2, 0.3), (2, 0.6), (8, 0.1)] {
                let name = format!("{strategy:?}, {honest} honest, {share}, published: {published}");
                let cell = cell(&name, 30, |seed| scenario(seed, honest, 1, share, strategy, published));
                assert_eq!((cell.wrong, cell.unfinished), (0, 0), "{name}");
            }
        }
    }
}

/// Three honest owners, a job of so many units.
fn honest(seed: u64, units: u64, published: bool, assurance: Option<f64>) -> Scenario {
    let mut scenario = scenario(seed, 3, 0, 0.0, Strategy::Honest, published);
    scenario.units = units;
    scenario.settings.assurance = assurance;
    scenario.most_s = 100.0 * units as f64;
    scenario
}

#[test]
fn what_is_checked_of_honest_owners_costs_what_is_documented() {
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
            let extra = cell.extra / cell.campaigns as f64;
            assert!(extra <= most, "{name}: {extra}");
        }
    }
}

#[test]
fn no_owners_that_lie_together_contradict_a_published_total() {
    for strategy in [Strategy::Colluding, Strategy::ColludingPolling, Strategy::Constant, Strategy::Late] {
        let name = format!("{strategy:?}, 1 honest, 2 liars of 60 %, published");
        let cell = cell(&name, 100, |seed| scenario(seed, 1, 2, 0.6, strategy, true));
        assert_eq!((cell.wrong, cell.unfinished), (0, 0), "{name}");
    }
}
