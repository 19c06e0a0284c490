//! A trial split into cases by the number of queens on the outermost open levels. Each case is
//! reduced and searched separately.
//!
//! On a board with many remaining squares, a single search spends its nodes on squares far out that
//! hardly constrain each other. The numbers of queens on the outer levels decide most of them, and
//! the orbit LP allows few combinations of these numbers.

use super::bounds::Bounds;
use super::engine::{Engine, TrialOutcome};
use super::orbit_lp::Multipliers;
use crate::verdict::Unproven;

/// A case: a number of queens on one level, on top of the enclosing cases.
#[derive(Debug)]
struct Case {
    /// The records valid in the case; if it is refuted, including those of the refutation.
    records: Vec<u8>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The bounds known so far.
    Open(Bounds),
    Refuted,
    /// Cases by the number of queens on `level`, consecutive from `first`.
    Split {
        level: usize,
        first: u32,
        cases: Vec<Case>,
    },
}

impl Case {
    /// Returns the bounds of the open cases in it.
    fn open_bounds(&self) -> Vec<Bounds> {
        match &self.state {
            State::Open(bounds) => vec![bounds.clone()],
            State::Refuted => Vec::new(),
            State::Split { cases, .. } => cases.iter().flat_map(Self::open_bounds).collect(),
        }
    }

    /// Returns the open cases in it, in the same order.
    fn open_cases(&mut self) -> Vec<&mut Self> {
        if let State::Open(_) = self.state {
            return vec![self];
        }
        match &mut self.state {
            State::Split { cases, .. } => cases.iter_mut().flat_map(Self::open_cases).collect(),
            State::Open(_) | State::Refuted => Vec::new(),
        }
    }
}

/// All cases of a trial.
#[derive(Debug)]
pub(super) struct Cases {
    /// The level of the trial.
    level: usize,
    whole: Case,
}

impl Cases {
    /// Creates a single open case: a trial on `level` with these bounds.
    pub(super) const fn new(level: usize, bounds: Bounds) -> Self {
        Self { level, whole: Case { records: Vec::new(), state: State::Open(bounds) } }
    }
}

impl Engine<'_> {
    /// Splits the cases of the current trial on `level` until at least `wanted` are open, and
    /// searches each for `nodes` nodes.
    pub(super) fn settle_cases(
        &mut self,
        cases: &mut Option<Cases>,
        level: usize,
        wanted: usize,
        nodes: u64,
    ) -> Result<TrialOutcome, Unproven> {
        self.log.cliques(&self.cliques);
        if cases.is_none() && self.reduce_in(level)? {
            return Ok(TrialOutcome::Refuted);
        }
        let bounds = self.bounds.clone();
        let cases = cases.get_or_insert_with(|| Cases::new(level, bounds.clone()));
        while (1..wanted).contains(&cases.whole.open_cases().len())
            && self.split_all(cases.level, &mut cases.whole)?
        {}
        let found = self.search_all(&mut cases.whole, nodes)?;
        self.bounds = bounds;
        if let Some(columns) = found {
            return Ok(TrialOutcome::Found(columns));
        }
        if !cases.whole.open_cases().is_empty() {
            return Ok(TrialOutcome::Open);
        }
        self.write_case(&cases.whole);
        Ok(TrialOutcome::Refuted)
    }

    /// Splits each open case that has an open level. Returns whether any was split.
    fn split_all(&mut self, trial: usize, whole: &mut Case) -> Result<bool, Unproven> {
        self.report()?;
        let split = |engine: &mut Engine<'_>, bounds: &Bounds| {
            engine.in_case(bounds, |engine| engine.split(trial))
        };
        let threads = self.query.threads;
        let results = self.run_tasks(threads, &whole.open_bounds(), split, |_| false)?;
        let mut any = false;
        for (case, result) in whole.open_cases().into_iter().zip(results) {
            let Some((split, records)) = result else { continue };
            case.records.extend(records);
            if let Some(split) = split {
                case.state = split;
                any = true;
            }
        }
        Ok(any)
    }

    /// Splits the current bounds by the outermost open level. Returns `None` if no level is open.
    fn split(&mut self, trial: usize) -> Result<Option<State>, Unproven> {
        for level in trial + 1..self.orbits.levels.len() {
            let remaining = self.bounds.remaining_on(&self.orbits.levels[level]);
            let room: i64 = remaining.map(|orbit| self.orbits.orbits[orbit].most).sum();
            let room = room as u32;
            let (least, most) = self.bounds.range(level).unwrap_or((0, self.query.n as u32));
            if room == 0 || least == most {
                continue;
            }
            if most > room && !self.limit(level, (least, room), false, Multipliers::default()) {
                continue;
            }
            let known = self.bounds.clone();
            let mut cases = Vec::new();
            for queens in least..=most.min(room) {
                let mark = self.log.mark();
                self.bounds = known.clone();
                self.bounds.set_range(level, Some((queens, queens)));
                let refuted = self.reduce_in(trial)?;
                let state = if refuted { State::Refuted } else { State::Open(self.bounds.clone()) };
                cases.push(Case { records: self.log.take_from(mark), state });
            }
            return Ok(Some(State::Split { level, first: least, cases }));
        }
        Ok(None)
    }

    /// Searches each open case for `nodes` nodes. Returns a solution, if one is found.
    fn search_all(&mut self, whole: &mut Case, nodes: u64) -> Result<Option<Vec<usize>>, Unproven> {
        let search = |engine: &mut Engine<'_>, bounds: &Bounds| {
            engine.in_case(bounds, |engine| engine.settle(nodes))
        };
        let is_last =
            |(settled, _): &(TrialOutcome, Vec<u8>)| matches!(settled, TrialOutcome::Found(_));
        // Remote solvers take parts of one case at a time.
        let threads = if self.solvers.is_empty() { self.query.threads } else { 1 };
        let results = self.run_tasks(threads, &whole.open_bounds(), search, is_last)?;
        for (case, result) in whole.open_cases().into_iter().zip(results) {
            match result {
                Some((TrialOutcome::Found(columns), _)) => return Ok(Some(columns)),
                Some((TrialOutcome::Refuted, records)) => {
                    case.records.extend(records);
                    case.state = State::Refuted;
                }
                Some((TrialOutcome::Open, _)) | None => {}
            }
        }
        Ok(None)
    }

    /// Calls `work` under the bounds of a case. Returns its result, and the records that it wrote.
    fn in_case<R>(
        &mut self,
        bounds: &Bounds,
        work: impl FnOnce(&mut Self) -> Result<R, Unproven>,
    ) -> Result<(R, Vec<u8>), Unproven> {
        self.report()?;
        self.bounds = bounds.clone();
        let mark = self.log.mark();
        let result = work(self)?;
        Ok((result, self.log.take_from(mark)))
    }

    /// Writes the refutation of a case. Each inner case but the last becomes the assumption that
    /// the level has more queens; the records of the case refute the contrary.
    fn write_case(&mut self, case: &Case) {
        self.log.records(&case.records);
        let State::Split { level, first, cases } = &case.state else { return };
        for (queens, inner) in (*first..).zip(cases) {
            if queens + 1 < first + cases.len() as u32 {
                self.log.assume(*level, true, queens + 1);
            }
            self.write_case(inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::beautiful::Query;
    use crate::beautiful::concurrent::tests::{Run, assert_is_best, run};
    use crate::progress::Unobserved;
    use crate::test_support::solutions;
    use nqueens_proof::beautiful::{check, check_partial, claim, prices, record};
    use nqueens_proof::board::Norm;

    /// Returns the proof, without the seal, of an engine that treats every trial as hard, and its
    /// solution.
    fn hard(query: Query) -> (Vec<u8>, Vec<usize>) {
        match run(query, 0, None, &mut Unobserved) {
            Run::Ended(best, proof) => (proof, best),
            Run::Stopped(_) => panic!("{query:?} was stopped"),
        }
    }

    #[test]
    fn cases_prove_the_same_optimum_as_one_search() {
        let mut assumptions = 0;
        for (n, norm, turning) in [
            (6, Norm::Euclidean, false),
            (9, Norm::Euclidean, false),
            (13, Norm::Euclidean, false),
            (16, Norm::Euclidean, false),
            (16, Norm::Euclidean, true),
            (18, Norm::Euclidean, false),
            (10, Norm::Manhattan, false),
            (9, Norm::Chebyshev, false),
        ] {
            let query = Query { n, norm, turning, threads: 1 };
            let (proof, best) = hard(query);
            assert_is_best(query, &best, &proof);
            for length in 3 + n..proof.len() {
                let begun = check_partial(n, &proof[..length]);
                assumptions +=
                    u32::from(begun.is_err_and(|why| why.to_string().contains("assumption")));
            }
        }
        assert!(assumptions > 50, "{assumptions} prefixes end in an assumption");
    }

    /// No alteration of a proof with assumptions makes it prove that a worse solution is best.
    #[test]
    fn altered_assumptions_prove_nothing_false() {
        let mut random = fastrand::Rng::with_seed(8);
        let (mut accepted, mut worse) = (0, 0);
        for n in [7, 8, 9] {
            let norm = Norm::Euclidean;
            let (proof, best) = hard(Query { n, norm, turning: false, threads: 1 });
            let rest = &proof[3 + n..];
            let all = solutions(n);
            for case in 0..20_000 {
                let mut altered = rest.to_vec();
                for _ in 0..random.usize(0..4) {
                    let at = random.usize(0..=altered.len());
                    let end = (at + random.usize(0..6)).min(altered.len());
                    let piece: Vec<u8> = match random.u8(0..6) {
                        0 => {
                            vec![record::ASSUME, random.u8(0..12), random.u8(0..2), random.u8(0..4)]
                        }
                        1 => vec![random.u8(0..10)],
                        // Diagonals that no multipliers fill.
                        5 => vec![record::FULL_BY_MULTIPLIERS, 0, 1, random.u8(0..n as u8)],
                        4 => {
                            let begin =
                                if random.bool() { vec![record::REFUTED] } else { Vec::new() };
                            let count = random.usize(1..8);
                            let price = |_| [random.u8(n as u8..6 * n as u8 + 12), random.u8(0..9)];
                            let prices: Vec<[u8; 2]> = (0..count).map(price).collect();
                            let mark =
                                [prices::mark(n), prices::filling_mark(n)][random.usize(0..2)];
                            let head = [mark as u8, prices.len() as u8];
                            [begin, head.to_vec(), prices.concat()].concat()
                        }
                        2 => altered[random.usize(0..=at)..at].to_vec(),
                        _ => Vec::new(),
                    };
                    let end = if random.bool() { at } else { end };
                    altered.splice(at..end, piece);
                }
                let columns = random.choice(&all).expect("there are solutions");
                let is_best = norm.fingerprint(columns) == norm.fingerprint(&best);
                let mut claim = claim(norm, false, Some(columns));
                claim.bytes(&altered);
                let checked = check(n, &claim.finish());
                assert!(
                    checked.is_err() || is_best,
                    "case {case} of n = {n}: {columns:?} by {altered:?}"
                );
                accepted += u32::from(checked.is_ok());
                worse += u32::from(!is_best);
            }
        }
        assert!(
            accepted > 1000 && worse > 10_000,
            "{accepted} accepted, {worse} worse ones refused"
        );
    }
}
