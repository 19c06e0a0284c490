//! Compares our simplex with other solvers of linear programs, in turn (A B A B), in CPU seconds of
//! one thread, on the same sequences of changes and solves that the methods of this program make.
//! All solvers must find the same optima.
//!
//! ```text
//! cargo bench --bench linear                          # microlp
//! cargo bench --bench linear --features highs         # and HiGHS
//! cargo bench --bench linear -- probing               # sequences whose name contains a word
//! cargo bench --bench linear -- alone                 # our simplex only
//! ```
#![allow(clippy::print_stdout)]

use std::time::Duration;

use fastrand::Rng;
use microlp::{ComparisonOp, OptimizationDirection, Problem as MicroProblem, Variable};
use nqueens_proof::board::{Piece, Problem};
use nqueens_solver::ilp::model::{Column, Direction, Domain, Model, Relation, Row};
use nqueens_solver::ilp::{Formulation, Linear, LinearOutcome, Lines, Vertex};
use nqueens_solver::simplex::{Simplex, Termination};
use nqueens_solver::{ProgressSink, Unobserved};

/// The number of pairs of runs.
const ROUNDS: usize = 5;

/// The number of solves for microlp, which starts from scratch each time.
const SOLVES_FOR_MICROLP: usize = 20;

/// A change or a solve.
enum Step {
    Bounds(usize, f64, f64),
    Cost(usize, f64),
    Column(f64, (f64, f64), Vec<(usize, f64)>),
    Solve,
}

/// A program, and the changes and solves applied to it.
struct Sequence {
    name: String,
    model: Model,
    steps: Vec<Step>,
}

impl Sequence {
    /// Returns the optimum of each solve, or `None` where the program is infeasible.
    fn play(&self, mut linear: Box<dyn Linear>, solves: usize) -> Vec<Option<f64>> {
        let mut optima = Vec::new();
        for step in &self.steps {
            match step {
                &Step::Bounds(column, lower, upper) => linear.set_bounds(column, lower, upper),
                &Step::Cost(column, cost) => linear.set_cost(column, cost),
                Step::Column(cost, bounds, terms) => linear.add_column(*cost, *bounds, terms),
                Step::Solve if optima.len() == solves => break,
                Step::Solve => optima.push(match linear.solve(&mut Unobserved) {
                    LinearOutcome::Optimal(vertex) => Some(vertex.objective),
                    LinearOutcome::Infeasible { .. } => None,
                    other => panic!("{}, solve {}: {other:?}", self.name, optima.len() + 1),
                }),
            }
        }
        optima
    }

    /// Returns the rows, columns and steps of our simplex at the end of the sequence.
    fn size(&self) -> (usize, usize, u64) {
        let mut simplex = Simplex::of(&self.model);
        for step in &self.steps {
            match step {
                &Step::Bounds(column, lower, upper) => simplex.set_bounds(column, lower, upper),
                &Step::Cost(column, cost) => simplex.set_cost(column, cost),
                Step::Column(cost, bounds, terms) => simplex.add_column(*cost, *bounds, terms),
                Step::Solve => {
                    assert!(matches!(
                        simplex.run(&mut Unobserved),
                        Termination::Optimal | Termination::Infeasible
                    ))
                }
            }
        }
        (simplex.rows(), simplex.columns(), simplex.steps())
    }

    fn solves(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, Step::Solve)).count()
    }
}

/// A solver: its name, its relaxation of a model, and the maximum number of solves.
type Competitor = (&'static str, fn(&Model) -> Box<dyn Linear>, usize);

const OURS: fn(&Model) -> Box<dyn Linear> = |model| Box::new(Simplex::of(model));

fn competitors() -> Vec<Competitor> {
    vec![
        #[cfg(feature = "highs")]
        (
            "HiGHS",
            |model| nqueens_solver::ilp::Solver::relaxation(&nqueens_solver::ilp::Highs, model),
            usize::MAX,
        ),
        ("microlp", |model| Box::new(Micro::of(model)), SOLVES_FOR_MICROLP),
    ]
}

fn main() {
    let mut words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let alone = words.iter().any(|word| word == "alone");
    words.retain(|word| word != "alone");
    let competitors = if alone { Vec::new() } else { competitors() };
    let sequences: [fn() -> Sequence; 10] = [
        || fixings(12, 200),
        || fixings(20, 200),
        || fixings(32, 60),
        || fixings(64, 20),
        || residual(40, 60),
        || residual(60, 60),
        || columns(30),
        || probing(48, 150),
        || probing(96, 150),
        || probing(130, 50),
    ];
    for sequence in sequences {
        let sequence = sequence();
        if words.is_empty() || words.iter().any(|word| sequence.name.contains(word)) {
            compare(&sequence, &competitors);
        }
    }
}

fn compare(sequence: &Sequence, competitors: &[Competitor]) {
    let (rows, columns, steps) = sequence.size();
    println!(
        "{}: {rows} rows, {columns} columns, {} solves, {steps} steps",
        sequence.name,
        sequence.solves()
    );
    if competitors.is_empty() {
        let times =
            (0..ROUNDS).map(|_| timed(|| sequence.play(OURS(&sequence.model), usize::MAX)).1);
        println!(
            "  ours {} ms per solve",
            spread(times.map(|time| 1e3 * time / sequence.solves() as f64))
        );
    }
    for &(name, relaxation, solves) in competitors {
        let mut runs = Vec::new();
        for _ in 0..ROUNDS {
            let (ours, our_time) = timed(|| sequence.play(OURS(&sequence.model), solves));
            let (theirs, their_time) = timed(|| sequence.play(relaxation(&sequence.model), solves));
            assert_same(&sequence.name, name, &ours, &theirs);
            runs.push((our_time / ours.len() as f64, their_time / theirs.len() as f64));
        }
        let ours = spread(runs.iter().map(|run| 1e3 * run.0));
        let theirs = spread(runs.iter().map(|run| 1e3 * run.1));
        let ratio = spread(runs.iter().map(|run| run.1 / run.0));
        println!("  ours {ours} ms per solve, {name} {theirs} ms; {name} / ours = {ratio}");
    }
}

fn assert_same(sequence: &str, competitor: &str, ours: &[Option<f64>], theirs: &[Option<f64>]) {
    assert_eq!(ours.len(), theirs.len());
    for (solve, pair) in ours.iter().zip(theirs).enumerate() {
        let same = match pair {
            (Some(ours), Some(theirs)) => (ours - theirs).abs() < 1e-5 * (1.0 + ours.abs()),
            (ours, theirs) => ours.is_none() == theirs.is_none(),
        };
        assert!(same, "{sequence}, solve {solve}: {pair:?} ({competitor})");
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = cpu_clock();
    let result = work();
    (result, (cpu_clock() - before).as_secs_f64())
}

#[cfg(unix)]
fn cpu_clock() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(now).expect("a monotonic clock")
}

/// Returns the wall-clock time, since there is no CPU clock.
#[cfg(not(unix))]
fn cpu_clock() -> Duration {
    std::time::SystemTime::UNIX_EPOCH.elapsed().expect("a monotonic clock")
}

/// Formats values as "median (min to max)".
fn spread(values: impl Iterator<Item = f64>) -> String {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    format!("{:.3} ({:.3} to {:.3})", values[values.len() / 2], values[0], values[values.len() - 1])
}

/// Returns a branching on the heaviest solution: squares are forbidden and allowed again.
fn fixings(n: usize, solves: usize) -> Sequence {
    let mut random = Rng::with_seed(n as u64);
    let mut model = Formulation::Diagonals.model(&Problem::empty(Piece::Queen, n), Lines::Full);
    let weights: Vec<i64> = (0..n * n).map(|_| random.i64(0..1000)).collect();
    model.set_objective(Direction::Maximise, |k| weights[k]);
    let mut simplex = Simplex::of(&model);
    let mut steps = Vec::new();
    let mut forbidden = Vec::new();
    for _ in 0..solves {
        simplex.run(&mut Unobserved);
        steps.push(Step::Solve);
        if forbidden.len() > n || simplex.ray().is_some() {
            for k in forbidden.drain(..) {
                simplex.set_bounds(k, 0.0, 1.0);
                steps.push(Step::Bounds(k, 0.0, 1.0));
            }
        } else {
            // Forbid a square that is used.
            let used: Vec<usize> = (0..n * n).filter(|&k| simplex.values()[k] > 0.1).collect();
            let k = *random.choice(&used).expect("a solution has queens");
            simplex.set_bounds(k, 0.0, 0.0);
            steps.push(Step::Bounds(k, 0.0, 0.0));
            forbidden.push(k);
        }
    }
    Sequence { name: format!("fixings, n = {n}"), model, steps }
}

fn unnamed(domain: Domain, cost: i64) -> Column {
    Column { name: String::new(), cost, domain }
}

/// Returns dives that place queens at random on the board that a prefix of queens (each in the
/// first column that is not attacked) leaves. The variable after the squares is t, which is
/// maximised: every diagonal is at most 1 − t.
fn residual(n: usize, solves: usize) -> Sequence {
    let mut random = Rng::with_seed(n as u64);
    let problem = Problem::empty(Piece::Queen, n);
    let mut queens: Vec<(usize, usize)> = Vec::new();
    for row in 0..n / 3 {
        if let Some(column) =
            (0..n).find(|&column| queens.iter().all(|&queen| !attacks(queen, (row, column))))
        {
            queens.push((row, column));
        }
    }
    let rest: Vec<(usize, usize)> =
        squares(n).filter(|&square| queens.iter().all(|&queen| !attacks(queen, square))).collect();
    let full = Formulation::Diagonals.model(&problem, Lines::Full);
    let mut model = Model {
        name: String::new(),
        direction: Direction::Maximise,
        columns: rest.iter().map(|_| unnamed(Domain::Free, 0)).collect(),
        rows: Vec::new(),
    };
    model.columns.push(unnamed(Domain::Free, 1));
    let t = rest.len();
    let mut diagonals = Vec::new();
    for row in full.rows {
        let among = |&(k, _): &(usize, i64)| rest.iter().position(|&(i, j)| i * n + j == k);
        let mut terms: Vec<(usize, i64)> =
            row.terms.iter().filter_map(among).map(|k| (k, 1)).collect();
        if !terms.is_empty() {
            if row.relation == Relation::AtMost {
                // A diagonal with a queen can hold no other and is left out: its last variable
                // becomes 1.
                let relief = model.columns.len();
                diagonals.extend(terms.iter().map(|&(k, _)| (k, relief)));
                model.columns.push(unnamed(Domain::Zero, 0));
                terms.extend([(t, 1), (relief, -1)]);
            }
            model.rows.push(Row { terms, ..row });
        }
    }
    let mut steps = vec![Step::Solve];
    let mut remaining = rest.clone();
    while steps.iter().filter(|step| matches!(step, Step::Solve)).count() < solves {
        let Some(&queen) = random.choice(&remaining) else {
            // Start a new dive.
            steps.extend((0..rest.len()).map(|k| Step::Bounds(k, 0.0, 1.0)));
            steps.extend((t + 1..model.columns.len()).map(|k| Step::Bounds(k, 0.0, 0.0)));
            remaining.clone_from(&rest);
            continue;
        };
        for (k, &square) in rest.iter().enumerate().filter(|(_, square)| remaining.contains(square))
        {
            if square == queen {
                steps.push(Step::Bounds(k, 1.0, 1.0));
                let used = diagonals.iter().filter(|&&(square, _)| square == k);
                steps.extend(used.map(|&(_, relief)| Step::Bounds(relief, 1.0, 1.0)));
            } else if attacks(queen, square) {
                steps.push(Step::Bounds(k, 0.0, 0.0));
            }
        }
        remaining.retain(|&square| !attacks(queen, square));
        steps.push(Step::Solve);
    }
    Sequence { name: format!("residual board, n = {n}"), model, steps }
}

fn squares(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(move |i| (0..n).map(move |j| (i, j)))
}

/// Returns whether queens on two squares attack each other, or the squares are equal.
fn attacks((i, j): (usize, usize), (k, l): (usize, usize)) -> bool {
    i == k || j == l || i + j == k + l || i + l == k + j
}

/// Returns a column generation: a square of a diagonal is paid for by the sets of diagonals that
/// are chosen, one set of each direction, or by a penalty. The new sets are those with the least
/// reduced costs, with some noise.
fn columns(n: usize) -> Sequence {
    let mut random = Rng::with_seed(n as u64);
    let inner = |(i, j): (usize, usize)| (i + j > n / 4 && i + n - j > n / 4).then_some((i, j));
    let cells: Vec<(usize, usize)> = squares(n).filter_map(inner).collect();
    let mut model = Model {
        name: String::new(),
        direction: Direction::Minimise,
        columns: cells.iter().map(|_| unnamed(Domain::Free, 0)).collect(),
        rows: Vec::new(),
    };
    let sum = |keep: &dyn Fn((usize, usize)) -> bool, relation, bound| {
        let kept = (0..cells.len()).filter(|&k| keep(cells[k]));
        Row::sum("", kept, relation, bound)
    };
    for line in 0..n {
        model.rows.push(sum(&|(i, _)| i == line, Relation::Equal, 1));
        model.rows.push(sum(&|(_, j)| j == line, Relation::Equal, 1));
    }
    let mut families = [Vec::new(), Vec::new()];
    for diagonal in 0..2 * n - 1 {
        let rows = [
            sum(&|(i, j)| i + j == diagonal, Relation::AtMost, 0),
            sum(&|(i, j)| i + n - 1 - j == diagonal, Relation::AtMost, 0),
        ];
        for (family, mut row) in families.iter_mut().zip(rows) {
            if !row.terms.is_empty() {
                row.terms.push((model.columns.len(), -1));
                model.columns.push(unnamed(Domain::Free, 1));
                family.push(model.rows.len());
                model.rows.push(row);
            }
        }
    }
    let chosen = model.rows.len();
    for _ in &families {
        // One artificial column each, so that there is a feasible point.
        model.rows.push(Row::sum("", [model.columns.len()], Relation::Equal, 1));
        model.columns.push(unnamed(Domain::Free, 100));
    }
    let mut simplex = Simplex::of(&model);
    let mut steps = Vec::new();
    let all_columns = cells.len()..chosen - 2 * n + cells.len();
    for k in all_columns {
        simplex.set_bounds(k, 0.0, n as f64);
        steps.push(Step::Bounds(k, 0.0, n as f64));
    }
    for _ in 0..150 {
        simplex.run(&mut Unobserved);
        steps.push(Step::Solve);
        let duals = simplex.duals().to_vec();
        for (number, family) in families.iter().enumerate() {
            // Prices are ≤ 0: the sets pay where they are large.
            let mut priced: Vec<(f64, usize)> =
                family.iter().map(|&row| (duals[row] + 0.05 * random.f64(), row)).collect();
            priced.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut terms: Vec<(usize, f64)> =
                priced[..n].iter().map(|&(_, row)| (row, -1.0)).collect();
            terms.push((chosen + number, 1.0));
            simplex.add_column(0.0, (0.0, 1.0), &terms);
            steps.push(Step::Column(0.0, (0.0, 1.0), terms));
        }
    }
    Sequence { name: format!("column generation, n = {n}"), model, steps }
}

/// Returns the program of a most beautiful solution modulo the symmetries of the square, with one
/// variable for each orbit. The outer levels have the numbers of queens of a known solution; then
/// one orbit after the other is maximised.
fn probing(n: usize, solves: usize) -> Sequence {
    let level =
        |(i, j): (usize, usize)| (2 * i).abs_diff(n - 1).pow(2) + (2 * j).abs_diff(n - 1).pow(2);
    // Even columns, then odd ones: a solution if n is even and leaves no 2 when divided by 6.
    assert!(n.is_multiple_of(2) && n % 6 != 2);
    let queens: Vec<(usize, usize)> = (0..n).map(|i| (i, (2 * i + 1) % (n + 1))).collect();
    let half = n.div_ceil(2);
    let mut orbits: Vec<Vec<(usize, usize)>> = Vec::new();
    let outermost = queens.iter().copied().map(level).max().expect("some queens");
    for i in 0..half {
        for j in i..half {
            let mut orbit = Vec::new();
            for (a, b) in [(i, j), (j, i)] {
                for (a, b) in [(a, b), (n - 1 - a, b), (a, n - 1 - b), (n - 1 - a, n - 1 - b)] {
                    orbit.push((a, b));
                }
            }
            orbit.sort_unstable();
            orbit.dedup();
            if level(orbit[0]) <= outermost {
                orbits.push(orbit);
            }
        }
    }
    let count = |keep: &dyn Fn((usize, usize)) -> bool, relation, bound| {
        let terms = orbits.iter().enumerate().filter_map(|(o, orbit)| {
            let cells = orbit.iter().filter(|&&cell| keep(cell)).count();
            (cells > 0).then_some((o, cells as i64))
        });
        Row { name: String::new(), terms: terms.collect(), relation, bound }
    };
    let mut rows: Vec<Row> =
        (0..half).map(|row| count(&|(i, _)| i == row, Relation::Equal, 1)).collect();
    rows.extend((0..n - 1).map(|d| count(&|(i, j)| i + d == j, Relation::AtMost, 1)));
    let mut levels: Vec<usize> = orbits.iter().map(|orbit| level(orbit[0])).collect();
    levels.sort_unstable_by(|a, b| b.cmp(a));
    levels.dedup();
    for &fixed in levels.iter().take(n / 2) {
        let bound = queens.iter().filter(|&&queen| level(queen) == fixed).count();
        rows.push(count(&|cell| level(cell) == fixed, Relation::Equal, bound as i64));
    }
    let columns = orbits.iter().map(|_| unnamed(Domain::Free, 0)).collect();
    let model = Model { name: String::new(), direction: Direction::Maximise, columns, rows };
    let mut steps = Vec::new();
    let stride = (orbits.len() / solves).max(1);
    for o in (0..orbits.len()).step_by(stride).take(solves) {
        steps.push(Step::Cost(o, orbits[o].len() as f64));
        steps.push(Step::Solve);
        steps.push(Step::Cost(o, 0.0));
    }
    Sequence { name: format!("probing of orbits, n = {n}"), model, steps }
}

/// The terms, the comparison and the bound of a constraint.
type MicroRow = (Vec<(usize, f64)>, ComparisonOp, f64);

/// microlp, which starts from scratch each time.
struct Micro {
    direction: OptimizationDirection,
    costs: Vec<f64>,
    bounds: Vec<(f64, f64)>,
    rows: Vec<MicroRow>,
}

impl Micro {
    fn of(model: &Model) -> Self {
        let direction = match model.direction {
            Direction::Minimise => OptimizationDirection::Minimize,
            Direction::Maximise => OptimizationDirection::Maximize,
        };
        let mut micro = Self { direction, costs: Vec::new(), bounds: Vec::new(), rows: Vec::new() };
        for column in &model.columns {
            let (lower, upper) = column.domain.bounds();
            micro.add_column(column.cost as f64, (lower as f64, upper as f64), &[]);
        }
        model.rows.iter().for_each(|row| micro.add_row(row));
        micro
    }
}

impl Linear for Micro {
    fn set_bounds(&mut self, column: usize, lower: f64, upper: f64) {
        self.bounds[column] = (lower, upper);
    }

    fn set_cost(&mut self, column: usize, cost: f64) {
        self.costs[column] = cost;
    }

    fn add_row(&mut self, row: &Row) {
        let comparison = match row.relation {
            Relation::AtMost => ComparisonOp::Le,
            Relation::Equal => ComparisonOp::Eq,
            Relation::AtLeast => ComparisonOp::Ge,
        };
        let terms = row.terms.iter().map(|&(j, a)| (j, a as f64)).collect();
        self.rows.push((terms, comparison, row.bound as f64));
    }

    fn add_column(&mut self, cost: f64, bounds: (f64, f64), terms: &[(usize, f64)]) {
        for &(row, a) in terms {
            self.rows[row].0.push((self.costs.len(), a));
        }
        self.costs.push(cost);
        self.bounds.push(bounds);
    }

    fn solve(&mut self, _: &mut dyn ProgressSink) -> LinearOutcome {
        let mut problem = MicroProblem::new(self.direction);
        let variables: Vec<Variable> = self
            .costs
            .iter()
            .zip(&self.bounds)
            .map(|(&cost, &bounds)| problem.add_var(cost, bounds))
            .collect();
        for (terms, comparison, bound) in &self.rows {
            let terms: Vec<(Variable, f64)> =
                terms.iter().map(|&(j, a)| (variables[j], a)).collect();
            problem.add_constraint(terms, *comparison, *bound);
        }
        match problem.solve() {
            Ok(outcome) => match outcome.into_solution() {
                Ok(solution) => LinearOutcome::Optimal(Vertex {
                    objective: solution.objective(),
                    values: variables.iter().map(|&v| solution.var_value(v)).collect(),
                    duals: None,
                }),
                Err(_) => LinearOutcome::Stopped,
            },
            Err(microlp::Error::Infeasible) => LinearOutcome::Infeasible { ray: None },
            Err(error) => LinearOutcome::Failed(error.to_string()),
        }
    }
}
