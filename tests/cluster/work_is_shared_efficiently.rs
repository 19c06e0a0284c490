//! Simulated sharing of work: workers whose rates differ by up to a factor of a thousand
//! complete a job together, checks included, in little more time than an ideal schedule takes.
//!
//! `NQUEENS_SEED=n` replays a seed; `NQUEENS_CAMPAIGNS=k` runs k seeds of each cell.

use crate::simulation;

use std::io::Write as _;

use nqueens::cluster::campaign::{JobState, Settings};
use simulation::seeds::seeds;
use simulation::{Scenario, Spec, Strategy, World, of_each_seed};

/// Creates workers whose rates are spread evenly on a logarithmic scale, each with an owner of its
/// own.
fn scenario(seed: u64, workers: usize, spread: f64, ideal_s: f64) -> Scenario {
    const FASTEST: f64 = 12.8;
    let mut random = fastrand::Rng::with_seed(seed);
    let workers: Vec<Spec> = (0..workers)
        .map(|i| {
            let rate = FASTEST * spread.powf(-random.f64());
            // A thread counts about 0.8 units per second where counting is fast.
            let capacity = ((rate / 0.8) as u32).max(1);
            Spec { owner: format!("owner-{i}"), strategy: Strategy::Honest, rate, capacity }
        })
        .collect();
    let rate: f64 = workers.iter().map(|worker| worker.rate).sum();
    let units = ((rate * ideal_s) as u64).max(64);
    let weights: Vec<f64> = (0..units).map(|_| 0.5 + random.f64()).collect();
    Scenario {
        seed,
        units,
        workers,
        settings: Settings::default(),
        published: true,
        arbiter_rate: 0.8,
        restarts: 0,
        weights,
        most_s: 100.0 * ideal_s,
    }
}

/// Runs a cell's campaigns. Returns their mean time, relative to an ideal schedule.
fn cell(workers: usize, spread: f64, ideal_s: f64, usual: u64) -> f64 {
    let seeds = seeds(usual);
    let over = of_each_seed(&seeds, |seed| {
        let scenario = scenario(seed, workers, spread, ideal_s);
        let rate: f64 = scenario.workers.iter().map(|worker| worker.rate).sum();
        let ideal_s = scenario.weights.iter().sum::<f64>() / rate;
        let mut world = World::new(scenario);
        let outcome = world.run();
        assert_eq!(outcome.state, JobState::Finished, "NQUEENS_SEED={seed}: {}", world.describe());
        assert!(outcome.right, "NQUEENS_SEED={seed}");
        outcome.elapsed_s / ideal_s
    });
    let worst = over.iter().fold(0.0f64, |worst, &over| worst.max(over));
    let mean = over.iter().sum::<f64>() / over.len() as f64;
    let _ = writeln!(
        std::io::stderr(),
        "| {ideal_s} s | {workers} | {spread} | {mean:.3} | {worst:.3} |"
    );
    mean
}

/// Prints the table of docs/trust.md; asserts only that each job ends with the correct total.
#[test]
fn work_is_shared_among_2_to_256_workers() {
    // A cell of 256 workers takes some seconds.
    let workers: &[usize] =
        if std::env::var_os("NQUEENS_TABLE").is_some() { &[2, 8, 32, 128, 256] } else { &[8] };
    for ideal_s in [30.0, 300.0] {
        for &workers in workers {
            cell(workers, 1000.0, ideal_s, 1);
        }
    }
}

#[test]
fn a_job_of_half_a_minute_takes_at_most_30_percent_longer_than_an_ideal_schedule() {
    for (workers, spread) in [(2, 1.0), (2, 10.0), (8, 100.0), (32, 1000.0), (128, 1000.0)] {
        let over = cell(workers, spread, 30.0, 12);
        assert!(over <= 1.3, "{workers} workers, {spread}: {over}");
    }
}

#[test]
fn a_job_of_five_minutes_takes_at_most_10_percent_longer_than_an_ideal_schedule() {
    for (workers, spread) in [(2, 1.0), (8, 1000.0)] {
        let over = cell(workers, spread, 300.0, 2);
        assert!(over <= 1.1, "{workers} workers, {spread}: {over}");
    }
}
