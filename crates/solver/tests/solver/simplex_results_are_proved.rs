//! The results of our simplex are proved by its output: an optimum by its point and its duals,
//! infeasibility by a ray. After any changes the result is that of a new simplex and of other
//! solvers.

use std::ops::ControlFlow;

use fastrand::Rng;
use nqueens_proof::board::{Piece, Problem};
use nqueens_solver::Unobserved;
use nqueens_solver::ilp::model::{Column, Direction, Model, Relation, Row};
use nqueens_solver::ilp::{Formulation, Linear, LinearOutcome, Lines, MicroLp, Solver};
use nqueens_solver::simplex::{Simplex, Termination};
use proptest::prelude::*;

use crate::support::StopAfter;

const NEAR: f64 = 1e-6;

/// A linear program in its plainest form.
#[derive(Clone, Debug)]
struct Plain {
    direction: Direction,
    costs: Vec<f64>,
    bounds: Vec<(f64, f64)>,
    rows: Vec<Row>,
}

impl Plain {
    fn of(model: &Model) -> Self {
        let bounds = |column: &Column| {
            let (lower, upper) = column.domain.bounds();
            (lower as f64, upper as f64)
        };
        Self {
            direction: model.direction,
            costs: model.columns.iter().map(|column| column.cost as f64).collect(),
            bounds: model.columns.iter().map(bounds).collect(),
            rows: model.rows.clone(),
        }
    }

    /// Adds this program to an empty one.
    fn load(&self, linear: &mut dyn Linear) {
        for (&cost, &bounds) in self.costs.iter().zip(&self.bounds) {
            linear.add_column(cost, bounds, &[]);
        }
        self.rows.iter().for_each(|row| linear.add_row(row));
    }

    fn simplex(&self) -> Simplex {
        let mut simplex = Simplex::new(self.direction);
        self.load(&mut simplex);
        simplex
    }

    fn sign(&self) -> f64 {
        if self.direction == Direction::Minimise { 1.0 } else { -1.0 }
    }

    /// Returns whether `values` satisfy rows and bounds.
    fn holds(&self, values: &[f64], tolerance: f64) -> bool {
        let bounds = values.iter().zip(&self.bounds);
        bounds.clone().all(|(&x, &(lower, upper))| x >= lower - tolerance && x <= upper + tolerance)
            && self.rows.iter().all(|row| {
                let excess = row.terms.iter().map(|&(j, a)| a as f64 * values[j]).sum::<f64>()
                    - row.bound as f64;
                match row.relation {
                    Relation::AtMost => excess <= tolerance,
                    Relation::Equal => excess.abs() <= tolerance,
                    Relation::AtLeast => excess >= -tolerance,
                }
            })
    }

    fn objective(&self, values: &[f64]) -> f64 {
        self.costs.iter().zip(values).map(|(c, x)| c * x).sum()
    }

    /// Returns Σ y × row over the columns, and over the right sides.
    fn combined(&self, multipliers: &[f64]) -> (Vec<f64>, f64) {
        assert_eq!(multipliers.len(), self.rows.len());
        let mut columns = vec![0.0; self.costs.len()];
        let mut right = 0.0;
        for (row, y) in self.rows.iter().zip(multipliers) {
            row.terms.iter().for_each(|&(j, a)| columns[j] += y * a as f64);
            right += y * row.bound as f64;
        }
        (columns, right)
    }

    /// Returns whether multipliers have the signs required when the objective is minimised.
    fn signs_are_right(&self, multipliers: &[f64], sign: f64) -> bool {
        self.rows.iter().zip(multipliers).all(|(row, y)| match row.relation {
            Relation::AtMost => sign * y <= NEAR,
            Relation::Equal => true,
            Relation::AtLeast => sign * y >= -NEAR,
        })
    }

    /// Solves the program and asserts that the result is proved. Returns the optimum.
    fn proved(&self, simplex: &mut Simplex) -> Option<f64> {
        let scale = 1.0 + self.costs.iter().fold(0.0f64, |most, c| most.max(c.abs()));
        match simplex.run(&mut Unobserved) {
            Termination::Optimal => {
                assert!(self.holds(simplex.values(), NEAR), "{:?}", simplex.values());
                let objective = self.objective(simplex.values());
                assert!((objective - simplex.objective()).abs() < NEAR * scale);
                assert!(
                    self.signs_are_right(simplex.duals(), self.sign()),
                    "{:?}",
                    simplex.duals()
                );
                let (columns, right) = self.combined(simplex.duals());
                let reduced = columns.iter().zip(&self.costs).zip(&self.bounds).map(
                    |((of_rows, c), &(lower, upper))| {
                        let reduced = c - of_rows;
                        if self.sign() * reduced > 0.0 { reduced * lower } else { reduced * upper }
                    },
                );
                let bound = right + reduced.sum::<f64>();
                let tolerance = NEAR * scale * (1 + self.costs.len()) as f64;
                assert!((bound - objective).abs() < tolerance, "{bound} is not {objective}");
                Some(objective)
            }
            Termination::Infeasible => {
                let ray = simplex.ray().expect("no bounds are crossed");
                assert!(self.signs_are_right(ray, 1.0), "{ray:?}");
                let (columns, right) = self.combined(ray);
                let greatest = columns
                    .iter()
                    .zip(&self.bounds)
                    .map(|(a, (lower, upper))| (a * lower).max(a * upper));
                let greatest: f64 = greatest.sum();
                assert!(greatest < right - 1e-8, "{greatest} < {right}");
                None
            }
            other => panic!("{other:?}: {self:?}"),
        }
    }
}

/// Returns the optimum by trying every vertex: all choices of as many rows and bounds as there are
/// columns.
fn by_enumeration(plain: &Plain) -> Option<f64> {
    let columns = plain.costs.len();
    let mut planes: Vec<(Vec<f64>, f64)> = Vec::new();
    for row in &plain.rows {
        let mut normal = vec![0.0; columns];
        row.terms.iter().for_each(|&(j, a)| normal[j] += a as f64);
        planes.push((normal, row.bound as f64));
    }
    for (j, &(lower, upper)) in plain.bounds.iter().enumerate() {
        for bound in [lower, upper] {
            planes.push(((0..columns).map(|k| f64::from(u8::from(j == k))).collect(), bound));
        }
    }
    let mut best: Option<f64> = None;
    for choice in 0..1u32 << planes.len() {
        if choice.count_ones() as usize != columns {
            continue;
        }
        let chosen = (0..planes.len())
            .filter(|&k| choice >> k & 1 == 1)
            .map(|k| planes[k].clone())
            .collect();
        if let Some(point) = meeting_point(chosen).filter(|point| plain.holds(point, 1e-9)) {
            let objective = plain.sign() * plain.objective(&point);
            best = Some(best.map_or(objective, |best| best.min(objective)));
        }
    }
    best.map(|objective| plain.sign() * objective)
}

/// Returns the point where as many planes as dimensions meet, by Gauss-Jordan elimination.
fn meeting_point(mut planes: Vec<(Vec<f64>, f64)>) -> Option<Vec<f64>> {
    let size = planes.len();
    for k in 0..size {
        let pivot =
            (k..size).max_by(|&a, &b| planes[a].0[k].abs().total_cmp(&planes[b].0[k].abs()))?;
        planes.swap(k, pivot);
        if planes[k].0[k].abs() < 1e-9 {
            return None;
        }
        let (normal, bound) = planes[k].clone();
        for (i, (other, right)) in planes.iter_mut().enumerate() {
            if i != k {
                let factor = other[k] / normal[k];
                other.iter_mut().zip(&normal).for_each(|(a, b)| *a -= factor * b);
                *right -= factor * bound;
            }
        }
    }
    Some(planes.iter().enumerate().map(|(k, (normal, bound))| bound / normal[k]).collect())
}

fn random_row(random: &mut Rng, columns: usize, largest: i64) -> Row {
    let terms = (0..columns).filter_map(|j| {
        let a = random.i64(-largest..=largest);
        (random.bool() && a != 0).then_some((j, a))
    });
    let terms = terms.collect();
    let relation =
        *random.choice(&[Relation::AtMost, Relation::Equal, Relation::AtLeast]).expect("three");
    Row { name: String::new(), terms, relation, bound: random.i64(-2..=3) }
}

fn random_plain(random: &mut Rng, columns: usize, rows: usize) -> Plain {
    let bounds = |random: &mut Rng| {
        let lower = random.i32(-1..=1);
        (f64::from(lower), f64::from(lower + random.i32(0..=2)))
    };
    Plain {
        direction: if random.bool() { Direction::Minimise } else { Direction::Maximise },
        costs: (0..columns).map(|_| f64::from(random.i32(-4..=4))).collect(),
        bounds: (0..columns).map(|_| bounds(random)).collect(),
        rows: (0..rows).map(|_| random_row(random, columns, 2)).collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn tiny_programs_have_the_optimum_of_all_vertices(seed: u64, columns in 1usize..=4, rows in 0usize..=4) {
        let plain = random_plain(&mut Rng::with_seed(seed), columns, rows);
        let found = plain.proved(&mut plain.simplex());
        match (by_enumeration(&plain), found) {
            (Some(best), Some(found)) => prop_assert!((best - found).abs() < NEAR, "{best} is not {found}"),
            (None, None) => {}
            (best, found) => prop_assert!(false, "{best:?} is not {found:?}"),
        }
    }

    #[test]
    fn after_any_changes_the_result_equals_that_of_a_new_simplex(seed: u64, columns in 1usize..=25, rows in 0usize..=15) {
        let mut random = Rng::with_seed(seed);
        let mut plain = random_plain(&mut random, columns, rows);
        let mut warm = plain.simplex();
        for _ in 0..12 {
            for _ in 0..random.usize(1..=3) {
                change(&mut random, &mut plain, &mut [&mut warm]);
            }
            match (plain.proved(&mut warm), plain.proved(&mut plain.simplex())) {
                (Some(warm), Some(cold)) => prop_assert!((warm - cold).abs() < NEAR, "{warm} is not {cold}"),
                (None, None) => {}
                (warm, cold) => prop_assert!(false, "{warm:?} is not {cold:?}"),
            }
        }
    }
}

/// Changes something at random in all of these.
fn change(random: &mut Rng, plain: &mut Plain, all: &mut [&mut dyn Linear]) {
    let columns = plain.costs.len();
    match random.usize(0..10) {
        0..4 => {
            let j = random.usize(..columns);
            let lower = random.i32(0..=1);
            let bounds = (f64::from(lower), f64::from(lower + random.i32(0..=1)));
            plain.bounds[j] = bounds;
            all.iter_mut().for_each(|linear| linear.set_bounds(j, bounds.0, bounds.1));
        }
        4..7 => {
            let j = random.usize(..columns);
            let cost = f64::from(random.i32(-5..=5));
            plain.costs[j] = cost;
            all.iter_mut().for_each(|linear| linear.set_cost(j, cost));
        }
        7 | 8 => {
            let row = random_row(random, columns, 1);
            all.iter_mut().for_each(|linear| linear.add_row(&row));
            plain.rows.push(row);
        }
        _ => {
            let cost = f64::from(random.i32(-5..=5));
            let mut terms = Vec::new();
            for (i, row) in plain.rows.iter_mut().enumerate().filter(|_| random.bool()) {
                terms.push((i, 1.0));
                row.terms.push((columns, 1));
            }
            all.iter_mut().for_each(|linear| linear.add_column(cost, (0.0, 1.0), &terms));
            plain.costs.push(cost);
            plain.bounds.push((0.0, 1.0));
        }
    }
}

fn queens(random: &mut Rng, n: usize) -> Plain {
    let mut model = Formulation::Diagonals.model(&Problem::empty(Piece::Queen, n), Lines::Full);
    let direction = if random.bool() { Direction::Minimise } else { Direction::Maximise };
    let largest = *random.choice(&[1, 50, 100_000]).expect("three");
    let costs: Vec<i64> = (0..n * n).map(|_| random.i64(0..=largest)).collect();
    model.set_objective(direction, |k| costs[k]);
    Plain::of(&model)
}

#[test]
fn results_for_queens_are_proved_after_any_fixings() {
    let mut random = Rng::with_seed(5);
    let (mut optimal, mut infeasible) = (0, 0);
    for n in (4..=24).chain(4..=12) {
        let mut plain = queens(&mut random, n);
        let mut warm = plain.simplex();
        for _ in 0..15 {
            for _ in 0..random.usize(1..=n) {
                let k = random.usize(..n * n);
                let bounds = *random
                    .choice(&[(0.0, 0.0), (0.0, 0.0), (0.0, 1.0), (1.0, 1.0)])
                    .expect("four");
                plain.bounds[k] = bounds;
                warm.set_bounds(k, bounds.0, bounds.1);
            }
            match plain.proved(&mut warm) {
                Some(_) => optimal += 1,
                None => infeasible += 1,
            }
            if random.bool() {
                // Most fixings of queens are infeasible: begin again.
                for k in 0..n * n {
                    plain.bounds[k] = (0.0, 1.0);
                    warm.set_bounds(k, 0.0, 1.0);
                }
                plain.proved(&mut warm).expect("all squares are free");
            }
            let k = random.usize(..n * n);
            plain.costs[k] += 7.0;
            warm.set_cost(k, plain.costs[k]);
        }
    }
    assert!(optimal > 50 && infeasible > 50, "{optimal} optimal, {infeasible} infeasible");
}

/// Changes the cost of a column and the bounds of another one, in both forms of a program.
fn change_cost_and_bounds(random: &mut Rng, plain: &mut Plain, warm: &mut Simplex) {
    let k = random.usize(..plain.costs.len());
    plain.costs[k] += 7.0;
    warm.set_cost(k, plain.costs[k]);
    let k = random.usize(..plain.costs.len());
    plain.bounds[k] = if random.u8(..5) > 0 { (0.0, 0.0) } else { (0.0, 1.0) };
    warm.set_bounds(k, plain.bounds[k].0, plain.bounds[k].1);
}

#[test]
fn a_target_ends_a_solve_only_at_a_feasible_point_that_attains_it() {
    let mut random = Rng::with_seed(6);
    let (mut reached, mut optimal, mut infeasible) = (0, 0, 0);
    for n in (4..=16).chain(4..=16) {
        let mut plain = queens(&mut random, n);
        let mut warm = plain.simplex();
        for _ in 0..15 {
            change_cost_and_bounds(&mut random, &mut plain, &mut warm);
            let best = plain.proved(&mut plain.simplex());
            let scale = 1.0 + plain.costs.iter().fold(0.0f64, |most, c| most.max(c.abs()));
            let slack = scale * random.f64() * random.choice([0.0, 0.2, 5.0]).expect("three");
            let beyond = if random.bool() { -0.01 * scale } else { 0.0 };
            let target = best.unwrap_or(0.0) + plain.sign() * (slack + beyond);
            let is_attained = |objective: f64| plain.sign() * (objective - target) < NEAR * scale;
            match warm.run_until(Some(target), &mut Unobserved) {
                None => {
                    assert!(plain.holds(warm.values(), NEAR), "{:?}", warm.values());
                    let objective = plain.objective(warm.values());
                    assert!((objective - warm.objective()).abs() < NEAR * scale);
                    assert!(is_attained(objective), "{objective} does not attain {target}");
                    reached += 1;
                }
                Some(Termination::Optimal) => {
                    let best = best.expect("a feasible program");
                    assert!((warm.objective() - best).abs() < NEAR * scale);
                    optimal += 1;
                }
                Some(Termination::Infeasible) => {
                    assert_eq!(best, None);
                    infeasible += 1;
                }
                other => panic!("{other:?}: {plain:?}"),
            }
        }
    }
    assert!(
        reached > 30 && optimal > 100 && infeasible > 10,
        "{reached} reached, {optimal} optimal, {infeasible} infeasible"
    );
}

#[test]
fn an_inspection_sees_the_multipliers_of_a_basis_and_can_end_a_solve() {
    let mut random = Rng::with_seed(8);
    let (mut inspected, mut ended) = (0, 0);
    for n in (4..=14).chain(4..=14) {
        let mut plain = queens(&mut random, n);
        let mut warm = plain.simplex();
        for _ in 0..15 {
            change_cost_and_bounds(&mut random, &mut plain, &mut warm);
            let mut left = random.u8(..8);
            let mut inspect = |multipliers: &[f64]| {
                // As many columns and rows as there are rows are basic: these reduced costs or
                // multipliers are 0.
                let (of_rows, _) = plain.combined(multipliers);
                let reduced = of_rows.iter().zip(&plain.costs).map(|(of_rows, c)| c - of_rows);
                let zeros = reduced.chain(multipliers.iter().copied()).filter(|y| y.abs() < NEAR);
                assert!(zeros.count() >= plain.rows.len());
                inspected += 1;
                if left == 0 {
                    return ControlFlow::Break(());
                }
                left -= 1;
                ControlFlow::Continue(())
            };
            let termination = warm.run_inspected(2, &mut inspect, &mut Unobserved);
            ended += usize::from(termination.is_none());
            assert_eq!(
                plain.proved(&mut warm).is_some(),
                plain.proved(&mut plain.simplex()).is_some()
            );
        }
    }
    assert!(inspected > 200 && ended > 50, "{inspected} inspected, {ended} ended");
}

#[test]
fn other_solvers_find_the_same_optimum() {
    #[cfg(feature = "highs")]
    let (others, rounds): (Vec<&dyn Solver>, usize) =
        (vec![&MicroLp, &nqueens_solver::ilp::Highs], 60);
    #[cfg(not(feature = "highs"))]
    let (others, rounds): (Vec<&dyn Solver>, usize) = (vec![&MicroLp], 20);
    let mut random = Rng::with_seed(17);
    for round in 0..rounds {
        let n = random.usize(4..=12);
        let mut plain = if round % 2 == 0 {
            queens(&mut random, n)
        } else {
            random_plain(&mut random, 4 * n, 2 * n)
        };
        let mut ours = plain.simplex();
        let empty = Model {
            name: String::new(),
            direction: plain.direction,
            columns: vec![],
            rows: vec![],
        };
        let mut theirs: Vec<Box<dyn Linear>> =
            others.iter().map(|other| other.relaxation(&empty)).collect();
        theirs.iter_mut().for_each(|linear| plain.load(linear.as_mut()));
        for _ in 0..8 {
            let mut all: Vec<&mut dyn Linear> = vec![&mut ours];
            all.extend(theirs.iter_mut().map(|linear| linear.as_mut() as &mut dyn Linear));
            change(&mut random, &mut plain, &mut all);
            let optimum = plain.proved(&mut ours);
            for (other, linear) in others.iter().zip(&mut theirs) {
                match (optimum, linear.solve(&mut Unobserved)) {
                    (Some(ours), LinearOutcome::Optimal(vertex)) => {
                        let tolerance = NEAR * (1.0 + ours.abs());
                        assert!(
                            (ours - vertex.objective).abs() < tolerance,
                            "{}: {} for {ours}",
                            other.name(),
                            vertex.objective
                        );
                    }
                    (None, LinearOutcome::Infeasible { .. }) => {}
                    (ours, other) => panic!("{ours:?}, {other:?}"),
                }
            }
        }
    }
}

#[test]
fn rows_with_two_bounds_or_none_and_changed_ones_are_respected() {
    // max x + 2y, 1 ≤ x + y ≤ 3, x, y in 0..2.
    let mut simplex = Simplex::new(Direction::Maximise);
    simplex.add_column(1.0, (0.0, 2.0), &[]);
    simplex.add_column(2.0, (0.0, 2.0), &[]);
    simplex.add_row_between(1.0, 3.0, [(0, 1.0), (1, 1.0)]);
    let optimum = |simplex: &mut Simplex| {
        assert_eq!(simplex.run(&mut Unobserved), Termination::Optimal);
        (simplex.objective(), simplex.duals()[0])
    };
    assert_eq!(optimum(&mut simplex), (5.0, 1.0));
    simplex.set_row_bounds(0, 0.0, 0.5);
    assert_eq!(optimum(&mut simplex), (1.0, 2.0));
    simplex.set_row_bounds(0, f64::NEG_INFINITY, f64::INFINITY);
    assert_eq!(optimum(&mut simplex), (6.0, 0.0));
    simplex.set_row_bounds(0, 5.0, f64::INFINITY);
    assert_eq!(simplex.run(&mut Unobserved), Termination::Infeasible);
    assert!(simplex.ray().is_some_and(|ray| ray[0] > 0.0));
    let mut copy = simplex.clone();
    copy.set_row_bounds(0, 4.0, 4.0);
    assert_eq!(optimum(&mut copy).0, 6.0);
    assert_eq!(
        simplex.run(&mut Unobserved),
        Termination::Infeasible,
        "the copy has its own bounds"
    );
}

#[test]
fn programs_without_rows_or_columns_have_their_optimum() {
    let mut simplex = Simplex::new(Direction::Minimise);
    assert_eq!(simplex.run(&mut Unobserved), Termination::Optimal);
    simplex.add_row_between(0.0, 1.0, []);
    assert_eq!(simplex.run(&mut Unobserved), Termination::Optimal);
    let mut simplex = Simplex::new(Direction::Minimise);
    simplex.add_column(-1.0, (0.0, 3.0), &[]);
    simplex.add_column(1.0, (-2.0, 3.0), &[]);
    assert_eq!(simplex.run(&mut Unobserved), Termination::Optimal);
    assert_eq!((simplex.objective(), simplex.values()), (-5.0, [3.0, -2.0].as_slice()));
}

#[test]
fn crossed_bounds_are_infeasible_and_unbounded_programs_fail() {
    let mut simplex = Simplex::new(Direction::Maximise);
    simplex.add_column(1.0, (0.0, f64::INFINITY), &[]);
    simplex.add_row_between(-1.0, 1.0, [(0, 1.0)]);
    simplex.set_bounds(0, 1.0, 0.0);
    assert_eq!((simplex.run(&mut Unobserved), simplex.ray()), (Termination::Infeasible, None));
    simplex.set_bounds(0, 0.0, f64::INFINITY);
    assert_eq!(simplex.run(&mut Unobserved), Termination::Optimal);
    simplex.set_row_bounds(0, f64::NEG_INFINITY, f64::INFINITY);
    assert_eq!(simplex.run(&mut Unobserved), Termination::Failed("unbounded"));
    simplex.set_bounds(0, f64::NEG_INFINITY, f64::INFINITY);
    simplex.set_row_bounds(0, 0.0, 2.0);
    assert_eq!((simplex.run(&mut Unobserved), simplex.objective()), (Termination::Optimal, 2.0));
}

#[test]
fn a_stopped_solve_can_be_continued() {
    let plain = queens(&mut Rng::with_seed(2), 20);
    let mut simplex = plain.simplex();
    assert_eq!(simplex.solve(&mut StopAfter(2)), LinearOutcome::Stopped);
    assert!(simplex.steps() > 0);
    let optimum = plain.proved(&mut simplex).expect("all squares are free");
    let fresh = plain.proved(&mut plain.simplex()).expect("all squares are free");
    assert!((optimum - fresh).abs() < NEAR * (1.0 + fresh.abs()));
}
