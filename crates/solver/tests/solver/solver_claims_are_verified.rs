//! Wrong results of a solver never yield a claim, and every solver keeps the contract of its trait.

use std::cell::RefCell;
use std::sync::Mutex;

use nqueens_proof::board::{Piece, Problem};
use nqueens_solver::Verdict;
use nqueens_solver::beautiful::fingerprint;
use nqueens_solver::ilp::exclusion::{Exclusion, Next};
use nqueens_solver::ilp::model::{Column, Direction, Domain, Model, Relation, Row};
use nqueens_solver::ilp::most_beautiful;
use nqueens_solver::ilp::{
    BEST_SOLVER, FirstMethod, Formulation, Goal, IntegerOutcome, Linear, LinearOutcome, Lines,
    MicroLp, Solver, Status, completes, heaviest, largest_set, lexicographic_first, one_solution,
};
use nqueens_solver::{ProgressSink, Unobserved};

use crate::support::StopAfter;

/// microlp with some of its results altered.
struct FaultySolver {
    random: Mutex<fastrand::Rng>,
    /// The percentage of altered results.
    percent: u8,
}

impl FaultySolver {
    fn new(seed: u64, percent: u8) -> Self {
        Self { random: Mutex::new(fastrand::Rng::with_seed(seed)), percent }
    }

    fn fault(&self) -> Option<u8> {
        let mut random = self.random.lock().expect("not poisoned");
        (random.u8(0..100) < self.percent).then(|| random.u8(0..6))
    }
}

impl Solver for FaultySolver {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn relaxation(&self, model: &Model) -> Box<dyn Linear> {
        let seed = self.random.lock().expect("not poisoned").u64(..);
        Box::new(FaultyLinear {
            linear: MicroLp.relaxation(model),
            random: RefCell::new(fastrand::Rng::with_seed(seed)),
            percent: self.percent,
        })
    }

    fn optimise(
        &self,
        model: &Model,
        start: Option<&[bool]>,
        sink: &mut dyn ProgressSink,
    ) -> IntegerOutcome {
        let mut outcome = MicroLp.optimise(model, start, sink);
        match self.fault() {
            Some(0) => {
                outcome = IntegerOutcome { status: Status::Infeasible, values: None, ..outcome }
            }
            // A feasible point, reported as optimal.
            Some(1) => {
                let mut any = model.clone();
                any.set_objective(Direction::Maximise, |k| (k as i64 * 7919) % 101);
                outcome.values = MicroLp.optimise(&any, None, &mut Unobserved).values;
                outcome.status = Status::Optimal;
            }
            Some(2) => outcome.values = Some(vec![f64::NAN; model.columns.len()]),
            Some(3) => {
                outcome.values =
                    Some((0..model.columns.len()).map(|k| f64::from(k % 3 == 0)).collect())
            }
            Some(4) => outcome.status = Status::Optimal,
            Some(5) => outcome.status = Status::Failed("injected failure".into()),
            _ => {}
        }
        outcome
    }
}

struct FaultyLinear {
    linear: Box<dyn Linear>,
    random: RefCell<fastrand::Rng>,
    percent: u8,
}

impl Linear for FaultyLinear {
    fn set_bounds(&mut self, column: usize, lower: f64, upper: f64) {
        self.linear.set_bounds(column, lower, upper);
    }
    fn set_cost(&mut self, column: usize, cost: f64) {
        self.linear.set_cost(column, cost);
    }
    fn add_row(&mut self, row: &Row) {
        self.linear.add_row(row);
    }
    fn add_column(&mut self, cost: f64, bounds: (f64, f64), terms: &[(usize, f64)]) {
        self.linear.add_column(cost, bounds, terms);
    }
    fn solve(&mut self, sink: &mut dyn ProgressSink) -> LinearOutcome {
        let outcome = self.linear.solve(sink);
        let random = self.random.get_mut();
        if random.u8(0..100) >= self.percent {
            return outcome;
        }
        match (random.u8(0..4), outcome) {
            (0, _) => LinearOutcome::Infeasible { ray: None },
            (1, LinearOutcome::Optimal(mut vertex)) => {
                vertex.objective += 3.0;
                LinearOutcome::Optimal(vertex)
            }
            (2, LinearOutcome::Optimal(mut vertex)) => {
                for value in &mut vertex.values {
                    *value = random.f64();
                }
                LinearOutcome::Optimal(vertex)
            }
            (3, _) => LinearOutcome::Failed("injected failure".into()),
            (_, outcome) => outcome,
        }
    }
}

#[test]
fn a_faulty_solver_never_yields_a_wrong_claim() {
    let first_of = |n: usize| match n {
        4 => Some(vec![1, 3, 0, 2]),
        6 => Some(vec![1, 3, 5, 0, 2, 4]),
        8 => Some(vec![0, 4, 7, 5, 2, 6, 1, 3]),
        _ => None,
    };
    let (mut claims, mut unproven) = (0, 0);
    for seed in 0..40 {
        let faulty = FaultySolver::new(seed, 20);
        for n in [3, 4, 6, 8] {
            for method in FirstMethod::ALL.into_iter().filter(|method| method.needs_solver()) {
                let answer = lexicographic_first(n, method, &faulty, &mut Unobserved)
                    .expect("the board is small");
                if answer.verdict == Verdict::Proven {
                    claims += 1;
                    assert_eq!(answer.found, first_of(n), "{method}, n = {n}, seed {seed}");
                } else {
                    unproven += 1;
                }
                let problem = Problem::empty(Piece::Queen, n);
                assert!(
                    answer.found.iter().all(|columns| completes(&problem, columns)),
                    "seed {seed}"
                );
            }
        }
    }
    assert!(
        claims > 100 && unproven > 100,
        "{claims} claims, {unproven} not proven: too few to test anything"
    );
}

#[test]
fn a_faulty_solver_never_yields_a_wrong_optimum() {
    let n = 6;
    let problem = Problem::empty(Piece::Queen, n);
    let weights: Vec<i64> = (0..36).map(|k| (k * k * 7 + 3 * k) % 23).collect();
    let weigh = |columns: &Vec<usize>| -> i64 {
        columns.iter().enumerate().map(|(row, &col)| weights[row * n + col]).sum()
    };
    let program = Goal::Heaviest(&weights).model(&problem, Formulation::Borders);
    let truth = heaviest(&problem, &program, &weights, &MicroLp, &mut Unobserved);
    let best = truth.found.as_ref().map(weigh).expect("a solution");
    let beauty = most_beautiful(n, &MicroLp, &mut Unobserved).found.as_deref().map(fingerprint);
    let mut unproven = 0;
    for seed in 0..60 {
        let faulty = FaultySolver::new(seed, 50);
        let heavy = heaviest(&problem, &program, &weights, &faulty, &mut Unobserved);
        let beautiful = most_beautiful(n, &faulty, &mut Unobserved);
        let one = one_solution(
            &problem,
            &Goal::AnySolution.model(&problem, Formulation::Borders),
            &faulty,
            &mut Unobserved,
        );
        let small = Problem::empty(Piece::Queen, 3);
        let set = largest_set(
            &small,
            &Goal::LargestSet.model(&small, Formulation::Borders),
            &faulty,
            &mut Unobserved,
        );
        if heavy.verdict == Verdict::Proven {
            assert_eq!(heavy.found.as_ref().map(weigh), Some(best), "seed {seed}");
        }
        if beautiful.verdict == Verdict::Proven {
            assert_eq!(beautiful.found.as_deref().map(fingerprint), beauty, "seed {seed}");
        }
        if one.verdict == Verdict::Proven {
            assert!(one.found.is_some_and(|columns| completes(&problem, &columns)), "seed {seed}");
        }
        if set.verdict == Verdict::Proven {
            assert_eq!(set.found.map(|set| set.len()), Some(2), "seed {seed}");
        }
        unproven += u32::from(heavy.verdict != Verdict::Proven)
            + u32::from(beautiful.verdict != Verdict::Proven);
        let mut exclusion = Exclusion::new(&problem, Formulation::Diagonals, &faulty);
        let mut listed = 0;
        let verdict = loop {
            match exclusion.next(&mut Unobserved) {
                Next::Solution(columns) => {
                    assert!(completes(&problem, &columns), "seed {seed}");
                    listed += 1;
                }
                Next::End(verdict) => break verdict,
            }
        };
        assert!(verdict != Verdict::Proven || listed == 4, "seed {seed}");
    }
    assert!(unproven > 20, "{unproven} not proven: too few to test anything");
}

#[test]
fn a_run_that_is_stopped_claims_nothing() {
    for method in FirstMethod::ALL {
        let n = 13;
        let answer = lexicographic_first(n, method, BEST_SOLVER, &mut StopAfter(1))
            .expect("the board is small enough");
        assert_ne!(answer.verdict, Verdict::Proven, "{method}");
    }
    assert_ne!(most_beautiful(12, BEST_SOLVER, &mut StopAfter(1)).verdict, Verdict::Proven);
}

fn solvers() -> Vec<&'static dyn Solver> {
    #[cfg(feature = "highs")]
    return vec![&MicroLp, &nqueens_solver::ilp::Highs];
    #[cfg(not(feature = "highs"))]
    vec![&MicroLp]
}

/// Returns max 3a + 2b + c, a + b ≤ 1, b + c ≤ 1, all in 0..1.
fn small_program() -> Model {
    let column = |name: &str, cost| Column { name: name.into(), cost, domain: Domain::Free };
    Model {
        name: "small".into(),
        direction: Direction::Maximise,
        columns: vec![column("a", 3), column("b", 2), column("c", 1)],
        rows: vec![
            Row::sum("ab", [0, 1], Relation::AtMost, 1),
            Row::sum("bc", [1, 2], Relation::AtMost, 1),
        ],
    }
}

fn optimum(linear: &mut dyn Linear) -> f64 {
    match linear.solve(&mut Unobserved) {
        LinearOutcome::Optimal(vertex) => vertex.objective,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_linear_program_is_solved_again_after_every_kind_of_change() {
    for solver in solvers() {
        let mut linear = solver.relaxation(&small_program());
        let near = |linear: &mut Box<dyn Linear>, expected: f64| {
            let found = optimum(linear.as_mut());
            assert!((found - expected).abs() < 1e-6, "{}: {found} for {expected}", solver.name());
        };
        near(&mut linear, 4.0);
        linear.set_bounds(0, 0.0, 0.0);
        near(&mut linear, 2.0);
        linear.set_cost(2, 5.0);
        near(&mut linear, 5.0);
        linear.set_bounds(0, 0.0, 1.0);
        near(&mut linear, 8.0);
        linear.add_row(&Row::sum("ac", [0, 2], Relation::AtMost, 1));
        near(&mut linear, 5.0);
        linear.add_column(10.0, (0.0, 1.0), &[(0, 1.0), (2, 1.0)]);
        near(&mut linear, 10.0);
        linear.set_bounds(3, 1.0, 1.0);
        linear.set_bounds(0, 1.0, 1.0);
        assert!(
            matches!(linear.solve(&mut Unobserved), LinearOutcome::Infeasible { .. }),
            "{}",
            solver.name()
        );
        linear.set_bounds(0, 0.0, 1.0);
        near(&mut linear, 10.0);
    }
}

/// If a solver provides duals and rays, they prove the bound and the infeasibility.
#[test]
fn duals_prove_the_bound_and_rays_the_infeasibility() {
    let mut random = fastrand::Rng::with_seed(11);
    let (mut duals, mut rays) = (0, 0);
    for solver in solvers() {
        for _ in 0..40 {
            let n = random.usize(4..=8);
            let problem = Problem::empty(Piece::Queen, n);
            let mut model = Formulation::Diagonals.model(&problem, Lines::Full);
            let costs: Vec<i64> = (0..n * n).map(|_| random.i64(0..50)).collect();
            model.set_objective(Direction::Maximise, |k| costs[k]);
            let mut linear = solver.relaxation(&model);
            let mut upper = vec![1.0; n * n];
            for _ in 0..random.usize(0..n * n) {
                let k = random.usize(..n * n);
                upper[k] = 0.0;
                linear.set_bounds(k, 0.0, 0.0);
            }
            // Σ y·row over the columns, and over the right sides.
            let combined = |y: &[f64]| {
                let mut columns = vec![0.0; n * n];
                let mut right = 0.0;
                for (row, y) in model.rows.iter().zip(y) {
                    row.terms.iter().for_each(|&(j, a)| columns[j] += y * a as f64);
                    right += y * row.bound as f64;
                }
                (columns, right)
            };
            match linear.solve(&mut Unobserved) {
                LinearOutcome::Optimal(vertex) => {
                    let Some(y) = vertex.duals else { continue };
                    duals += 1;
                    let (columns, right) = combined(&y);
                    let reduced: f64 = (0..n * n)
                        .map(|k| (costs[k] as f64 - columns[k]).max(0.0) * upper[k])
                        .sum();
                    assert!((right + reduced - vertex.objective).abs() < 1e-5, "{}", solver.name());
                }
                LinearOutcome::Infeasible { ray } => {
                    let Some(y) = ray else { continue };
                    rays += 1;
                    // The combined row cannot be satisfied within the bounds, one way or the other.
                    let (columns, right) = combined(&y);
                    let most: f64 = (0..n * n).map(|k| columns[k].max(0.0) * upper[k]).sum();
                    let least: f64 = (0..n * n).map(|k| columns[k].min(0.0) * upper[k]).sum();
                    assert!(
                        most < right - 1e-7 || least > right + 1e-7,
                        "{}: {least} {right} {most}",
                        solver.name()
                    );
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(duals > 5 && rays > 5, "{duals} duals, {rays} rays");
}
