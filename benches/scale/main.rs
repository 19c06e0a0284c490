//! A campaign of volunteers at the scale of Q(28). The coordinator's campaign and ledger are the
//! real ones; time, the network and the workers are simulated, so a year takes minutes.
//!
//! `cargo bench --bench scale [-- VOLUNTEERS UNITS DAYS [FOLDER]]`, by default with 10,000
//! volunteers, 1,000,000 units and 365 days, prints the coordinator's time by call, its memory, the
//! cost of the checks, and the time of the campaign compared with that of volunteers who never
//! wait. With a folder it also writes the ledger there, and loads it again in a process of its own:
//! all of it, and from a snapshot.
//!
//! `cargo bench --bench scale -- fill UNITS [FOLDER]` prints the memory of a campaign of which all
//! units are counted and confirmed, with a folder for temporary files or without, and the time of a
//! quarantine; with a folder also those of a snapshot and of a restart from it.
//!
//! The volunteers' rates are spread over four decades. Each has an owner of its own, sleeps for a
//! part of the day, leaves after 120 days on average (another one takes its place), and one in a
//! hundred lies in every tenth unit. The rates are such that counting every unit twice, which a job
//! of several owners without a published total requires, takes the given number of days. The
//! arbiter is as fast as the fastest volunteer, about nine times as fast as the average.
//!
//! Not included: gRPC, TLS and the verification of signatures, which `benches/coordinator.rs` and
//! `docs/operations.md` account for.

#![allow(clippy::print_stdout)]

mod fill;
mod load;
mod measure;
mod volunteer;
mod world;

use std::path::PathBuf;

use world::{Scenario, World};

fn main() {
    // Cargo passes --bench to every bench, and --test if it only checks that they run.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if arguments.iter().any(|a| a == "--test") {
        return;
    }
    if let [word, path] = arguments.as_slice() {
        let path = PathBuf::from(path);
        match &word[..] {
            "load" => return load::load(&path),
            "load-after" => return load::load_after_snapshot(&path),
            "restore" => return fill::restore(&path),
            _ => {}
        }
    }
    if let Some((word, rest)) = arguments.split_first()
        && word == "fill"
    {
        let units = rest.first().and_then(|word| word.parse().ok()).unwrap_or(1_000_000);
        return fill::fill(units, rest.get(1).map(PathBuf::from));
    }
    let number = |place: usize, usual: u64| {
        arguments.get(place).and_then(|word| word.parse().ok()).unwrap_or(usual)
    };
    let scenario = Scenario {
        volunteers: number(0, 10_000),
        units: number(1, 1_000_000),
        days: number(2, 365),
        folder: arguments.get(3).map(PathBuf::from),
    };
    let ledger = World::new(scenario).run();
    if let Some(path) = ledger {
        load::elsewhere("load", &path);
        load::write_snapshot(&path);
        load::elsewhere("load-after", &path);
    }
}
