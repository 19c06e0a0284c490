//! The amount of work in a submission: enough that the host overhead is negligible, and little
//! enough that no watchdog triggers and a display on the same device stays responsive.

use std::time::Duration;

use super::layout::{Counters, GROUP, LEVELS, MOST_TURNS};

/// The target duration of a submission.
const TARGET: Duration = Duration::from_millis(100);
/// The minimum number of turns in one search; with fewer, saving and restoring the lanes dominates.
const FEWEST_TURNS: u32 = 256;
/// The limit for software drivers, which silently leave a shader's loop after 65,535 iterations.
const MOST_SOFTWARE_TURNS: u32 = 48_000;
/// The maximum number of rounds and expansions: a submission of thousands of dispatches.
const MOST_ROUNDS: u32 = 256;
const MOST_EXPANSIONS: u32 = 32;

/// The amounts, tuned by observed submissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Turns of a lane in one search.
    pub turns: u32,
    /// Rounds in a submission.
    pub rounds: u32,
    /// Expansions in a round.
    pub expansions: u32,
    most_turns: u32,
}

/// The measurements of a finished submission.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// The duration.
    pub elapsed: Duration,
    /// The number of rounds.
    pub rounds: u32,
    /// The total number of expansions.
    pub expansions: u32,
    /// The expansions that had work to do.
    pub used: u32,
    /// The number of lanes of the device.
    pub lanes: u32,
    /// The counters afterwards.
    pub counters: Counters,
}

impl Tuning {
    /// Returns the conservative initial tuning of an unknown device.
    pub const fn first(software: bool) -> Self {
        let most_turns = if software { MOST_SOFTWARE_TURNS } else { MOST_TURNS };
        Self { turns: FEWEST_TURNS, rounds: 1, expansions: 4, most_turns }
    }

    /// Returns the tuning with the most turns, in a single round: for the long-running part of a
    /// self-test, and as a reference in measurements of bounded searches.
    pub const fn longest(self) -> Self {
        Self { turns: self.most_turns, rounds: 1, expansions: 16, ..self }
    }

    /// Returns the nearest valid amounts: whole groups of turns, up to the limit of a search, and
    /// at least one round and one expansion.
    pub(super) fn allowed(self) -> Self {
        let turns = self.turns.clamp(GROUP, self.most_turns) / GROUP * GROUP;
        Self { turns, rounds: self.rounds.max(1), expansions: self.expansions.max(1), ..self }
    }

    /// Adjusts the amounts to a finished submission. Only a submission with work for nearly all
    /// lanes predicts how long more work would take: after such a submission nothing more than
    /// doubles, and after any other nothing grows.
    pub fn observe(&mut self, observation: &Observation) {
        let plenty = observation.counters.level_count[..LEVELS].iter().any(|&count| count > 0);
        let full = observation.counters.busy >= observation.lanes / 8 * 7;
        let used = f64::from(observation.used) / f64::from(observation.expansions.max(1));
        let factor = TARGET.as_secs_f64() / observation.elapsed.as_secs_f64().max(1e-6);
        let factor = factor.clamp(0.125, if full { 2.0 } else { 1.0 });
        let before = f64::from(self.rounds);
        let mut rounds = before * factor;
        if !full && plenty && used > 0.9 {
            // Lanes ran out of work although every expansion was used: add expansions.
            self.expansions = (self.expansions * 2).min(MOST_EXPANSIONS);
        } else if !full && plenty && self.turns > FEWEST_TURNS {
            // The ring cannot hold what a search consumes: make searches shorter and more frequent.
            self.turns = (self.turns / 2).max(FEWEST_TURNS);
            rounds = before * (2.0 * factor).min(2.0);
        } else if full && used < 0.5 && self.expansions > 1 {
            self.expansions -= 1;
        } else if full && factor > 1.0 && self.turns < 4096.min(self.most_turns) {
            // Lengthen searches before adding rounds, as long as the ring keeps them supplied.
            self.turns = (self.turns * 2).min(self.most_turns);
            rounds = before;
        }
        if factor < 1.0 && self.rounds == 1 {
            // Apart from the expansions, the time is proportional to the turns.
            self.turns =
                ((f64::from(self.turns) * factor) as u32).clamp(FEWEST_TURNS, self.most_turns);
        }
        self.rounds = (rounds.round() as u32).clamp(1, MOST_ROUNDS);
        self.turns -= self.turns % GROUP;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that makes this many turns a second on each lane.
    fn run(tuning: &Tuning, turns_per_s: f64, busy: u32) -> Observation {
        let turns = f64::from(tuning.turns) * f64::from(tuning.rounds);
        let expansions = tuning.rounds * tuning.expansions;
        let counters = Counters { busy, level_count: [1; LEVELS], ..Counters::default() };
        let elapsed = Duration::from_secs_f64(turns / turns_per_s);
        Observation {
            elapsed,
            rounds: tuning.rounds,
            expansions,
            used: expansions / 2,
            lanes: 64,
            counters,
        }
    }

    #[test]
    fn submissions_converge_to_about_100_ms_and_stay_below_500_on_a_known_device() {
        for turns_per_s in [1e4, 1e5, 1e6, 1e7] {
            let mut tuning = Tuning::first(false);
            let mut last = Duration::ZERO;
            for step in 0..40 {
                let observation = run(&tuning, turns_per_s, 64);
                last = observation.elapsed;
                assert!(step == 0 || last < Duration::from_millis(500), "{turns_per_s}: {last:?}");
                tuning.observe(&observation);
            }
            assert!((50..200).contains(&last.as_millis()), "{turns_per_s}: {last:?} {tuning:?}");
        }
    }

    #[test]
    fn a_software_driver_is_never_given_more_iterations_than_it_completes() {
        let mut tuning = Tuning::first(true);
        for _ in 0..100 {
            tuning.observe(&run(&tuning, 1e9, 64));
            assert!(tuning.turns < 60_000 && tuning.turns.is_multiple_of(GROUP));
        }
        assert!(tuning.longest().turns < 60_000);
    }

    #[test]
    fn submissions_with_few_busy_lanes_do_not_increase_the_work() {
        let mut tuning = Tuning { turns: 1024, rounds: 3, expansions: 4, most_turns: MOST_TURNS };
        for plenty in [0, 1] {
            for used in [0, 1] {
                let mut observation = run(&tuning, 1e9, 10);
                observation.counters.level_count = [plenty; LEVELS];
                observation.used = observation.expansions * used;
                let mut after = tuning;
                after.observe(&observation);
                assert!(after.turns * after.rounds <= tuning.turns * tuning.rounds, "{after:?}");
            }
        }
        // Then a full submission, on a device that makes 10^6 turns a second.
        let observation = run(&tuning, 1e6, 64);
        tuning.observe(&observation);
        assert!(run(&tuning, 1e6, 64).elapsed <= 2 * observation.elapsed);
    }

    #[test]
    fn idle_lanes_cause_more_expansions() {
        let mut tuning = Tuning::first(false);
        for _ in 0..10 {
            let mut observation = run(&tuning, 1e6, 0);
            observation.used = observation.expansions;
            tuning.observe(&observation);
        }
        assert_eq!(tuning.expansions, MOST_EXPANSIONS);
    }

    #[test]
    fn a_drained_ring_causes_shorter_searches() {
        let mut tuning = Tuning { turns: 8192, rounds: 4, expansions: 4, most_turns: MOST_TURNS };
        tuning.observe(&run(&tuning, 1e6, 0));
        assert_eq!(tuning.turns, 4096);
    }
}
