use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::super::remote_solver::{AnswerObserver, CheckPermits, RemoteQuerySolver};
use super::super::task_queue::{Answered, TaskKind, TaskQueue};
use super::used_refutations::{MOST_RESTARTS, most_work};
use super::*;
use crate::board::{Piece, Square, first_attack};
use crate::cluster::protocol::{ProveCall, TaskAnswer, TaskOutcome, TaskQuery};
use crate::decomposition::JobHash;
use crate::proof::first::{Multipliers, check_refutation};
use crate::solver::Unobserved;
use crate::solver::first::{
    Control, Options, PrefixQuery, QueryOutcome, QuerySolver as _, Task, first_solution,
};

/// The first solution of eight queens begins with 0 4, so these have none.
const CLOSED: [&[usize]; 3] = [&[0, 2], &[0, 3, 1], &[0, 3, 5]];

fn query(n: usize, prefix: &[usize], programmes: u64) -> CompletionQuery {
    let (prefix, node_limit, attempt) = (prefix.to_vec(), 1, 0);
    CompletionQuery {
        n,
        prefix,
        programmes,
        node_limit,
        attempt,
        only_dives: false,
        set_programmes: 0,
    }
}

/// Returns the answer of a worker that refutes the prefix of the query.
fn refuted(query: &CompletionQuery, refutation: Refutation, worker: &str) -> PrefixRefutation {
    let outcome = TaskOutcome::Refuted(refutation.clone());
    let answer = TaskAnswer { outcome, nodes: 0, programmes: 0, elapsed_s: 0.0 };
    let (worker, kind) = (worker.to_owned(), TaskKind::Completion);
    let answered = Some((query.clone(), Answered { worker, boot: 1, kind, answer }));
    PrefixRefutation { prefix: query.prefix.clone(), refutation, answered }
}

/// Returns a worker's claim that a search refutes this prefix of eight queens.
fn claim(prefix: &[usize]) -> PrefixRefutation {
    refuted(&query(8, prefix, 1), Refutation::search(), "a")
}

/// Records the verdicts.
#[derive(Default)]
struct Recorder(Mutex<Vec<AnswerVerdict>>);

impl AnswerObserver for Recorder {
    fn validated(&self, _: &Answered, verdict: &AnswerVerdict, _: Duration) {
        lock(&self.0).push(verdict.clone());
    }
}

/// The checks of a search, and what they need.
struct Bench {
    checks: Arc<RefutationChecks>,
    recorder: Arc<Recorder>,
    queue: Arc<TaskQueue>,
}

impl Bench {
    fn new(n: usize) -> Self {
        Self::resumed(n, &Refutations::new(), Refutations::new())
    }

    fn resumed(n: usize, checked: &Refutations, unchecked: Refutations) -> Self {
        let checked = &mut checked.clone();
        let checks = RefutationChecks::new(n, checked, unchecked, &mut Meter::default());
        let checks = Arc::new(checks.expect("no limit"));
        Self { checks, recorder: Arc::default(), queue: Arc::new(TaskQueue::new()) }
    }

    fn solver(&self) -> RemoteSolver {
        RemoteSolver {
            job: JobHash::from_bytes([7; 16]),
            priority: 0,
            queue: Arc::clone(&self.queue),
            permits: Arc::new(CheckPermits::new()),
            listener: Arc::clone(&self.recorder) as Arc<dyn AnswerObserver>,
        }
    }

    fn add(&self, prefix: &[usize]) -> Option<Refutation> {
        self.checks.add(claim(prefix), &|| true)
    }

    /// Checks the next refutation. Returns its prefix.
    fn check_next(&self) -> Option<Vec<usize>> {
        let check = self.checks.check_next(&|| false)?;
        let prefix = check.one.prefix.clone();
        self.checks.conclude(check, &self.solver());
        Some(prefix)
    }

    fn open_tasks(&self) -> usize {
        self.queue.open(self.solver().job).0
    }

    fn verdicts(&self) -> Vec<AnswerVerdict> {
        std::mem::take(&mut lock(&self.recorder.0))
    }

    /// Returns the verdict on a refutation of the prefix of a query.
    fn verdict(query: &CompletionQuery, refutation: Refutation) -> AnswerVerdict {
        let bench = Self::new(query.n);
        assert!(bench.checks.add(refuted(query, refutation, "a"), &|| true).is_some());
        assert_eq!(bench.check_next(), Some(query.prefix.clone()));
        bench.verdicts().pop().expect("a verdict")
    }
}

fn all_of(prefixes: &[&[usize]]) -> Refutations {
    prefixes.iter().map(|prefix| (prefix.to_vec(), Refutation::search())).collect()
}

#[test]
fn correct_refutations_are_accepted_and_wrong_ones_refused() {
    let verdict = |prefix, bytes: Vec<u8>| {
        Bench::verdict(&query(8, prefix, 1), Refutation::from_bytes(bytes))
    };
    let search = Refutation::search().as_bytes().to_vec();
    assert_eq!(verdict(CLOSED[0], search.clone()), AnswerVerdict::Good);
    assert!(matches!(verdict(&[0], search), AnswerVerdict::Wrong(_)));
    assert!(matches!(verdict(CLOSED[0], vec![0, 0]), AnswerVerdict::Wrong(_)));
    // An unknown step is not a wrong answer.
    let newer = verdict(CLOSED[0], vec![12, 9]);
    assert!(matches!(newer, AnswerVerdict::Unknown(why) if why.contains("kind 12")));
    // A refutation that only demands a search must not keep the checker busy for ever.
    let wide = Bench::verdict(&query(100, &[0], 0), Refutation::search());
    assert_eq!(wide, AnswerVerdict::Useless);
}

#[test]
fn a_refutation_may_eliminate_all_cells_again_but_not_do_more() {
    // The first solution of twelve queens begins with 1 3 5 8 (1-based).
    let query = query(12, &[0, 2, 4, 1], 1);
    // Dual bounds that prove nothing, each of work 500.
    let long = |budgets| {
        let nothing = Multipliers::none(12);
        let then = |then, _| Refutation::dual_bound(&nothing, false, &then);
        (0..budgets).fold(Refutation::search(), then)
    };
    assert_eq!(most_work(&query, &Refutation::search()), 400_000 + 8 + 501);
    assert_eq!(most_work(&query, &long(850)), 400_000 + 8 + 501 * 144);
    assert_eq!(Bench::verdict(&query, long(850)), AnswerVerdict::Good);
    assert_eq!(Bench::verdict(&query, long(950)), AnswerVerdict::Useless);
}

#[test]
fn a_refutation_of_unbounded_work_ends_at_the_coordinators_own_limit() {
    // Two bytes make the checker try everything, on a board where that never ends; the query
    // allows it all.
    let everything = refuted(&query(128, &[], u64::MAX), Refutation::search(), "a");
    let mut meter = Meter::new(Some(100_000));
    let ended = everything.check(128, &mut meter).expect_err("a limit");
    assert_eq!(AnswerVerdict::of_refutation(&ended), AnswerVerdict::Useless);
    assert!(meter.work() < 200_000, "{}", meter.work());
    // The search may also stop the check.
    let mut stopped = Meter::new(None).stopped_by(&|| true);
    assert!(everything.check(128, &mut stopped).is_err());
}

#[test]
fn refutations_are_used_before_they_are_checked_in_lexicographic_order() {
    let bench = Bench::new(8);
    for prefix in [CLOSED[2], CLOSED[0], CLOSED[1]] {
        assert_eq!(bench.add(prefix), Some(Refutation::search()));
        assert_eq!(bench.checks.usable(prefix, &|| true), Some(Refutation::search()));
    }
    let checked: Vec<_> = std::iter::from_fn(|| bench.check_next()).collect();
    assert_eq!(checked, CLOSED);
    assert_eq!(bench.verdicts(), vec![AnswerVerdict::Good; 3]);
    assert!(!bench.checks.interrupt_search());
    assert!(bench.checks.wait_for(&all_of(&CLOSED), &|| false));
}

#[test]
fn refutations_below_a_refuted_prefix_are_checked_last() {
    let bench = Bench::new(8);
    for prefix in [&[0, 2, 5], CLOSED[1], CLOSED[0]] {
        assert_eq!(bench.add(prefix), Some(Refutation::search()));
    }
    let checked: Vec<_> = std::iter::from_fn(|| bench.check_next()).collect();
    assert_eq!(checked, [CLOSED[0], CLOSED[1], &[0, 2, 5]]);
    assert_eq!(bench.verdicts(), vec![AnswerVerdict::Good; 3]);
}

#[test]
fn the_search_begins_again_without_a_wrong_refutation_and_what_consists_of_it() {
    let bench = Bench::new(8);
    // 0 4 has a completion.
    let mut used = all_of(&[&[0, 2], &[0, 3], &[0, 4]]);
    for prefix in [CLOSED[0], CLOSED[1], &[0, 4, 7]] {
        assert!(bench.add(prefix).is_some());
    }
    while bench.check_next().is_some() {}
    assert!(matches!(
        bench.verdicts()[..],
        [AnswerVerdict::Good, AnswerVerdict::Good, AnswerVerdict::Wrong(_)]
    ));
    assert!(bench.checks.interrupt_search());
    assert!(!bench.checks.wait_for(&used, &|| false));
    // Until the search begins again, nobody can add another one that it would use.
    assert_eq!(bench.add(&[0, 4, 7]), None);
    let (checked, unchecked) = bench.checks.to_save(&used);
    assert!(checked.keys().eq([&[0, 2], &[0, 3]]) && unchecked.is_empty());
    assert!(bench.checks.remove_unusable(&mut used));
    assert!(used.keys().eq([&[0, 2], &[0, 3]]));
    assert!(!bench.checks.interrupt_search() && !bench.checks.remove_unusable(&mut used));
    assert!(bench.add(&[0, 4, 7]).is_some());
}

#[test]
fn after_some_wrong_refutations_the_search_waits_for_the_checks() {
    let bench = Bench::new(8);
    let mut used = Refutations::new();
    for restart in 1..=MOST_RESTARTS {
        bench.add(&[0, 4]);
        while bench.check_next().is_some() {}
        if restart == MOST_RESTARTS {
            // It is used, and not checked.
            bench.add(CLOSED[1]);
        }
        used = all_of(&[CLOSED[0], CLOSED[1]]);
        assert!(bench.checks.remove_unusable(&mut used));
    }
    assert!(used.keys().eq([CLOSED[0]]), "{used:?}");
    thread::scope(|scope| {
        let added = scope.spawn(|| {
            let added = [CLOSED[1], CLOSED[2], &[0, 4]].map(|prefix| bench.add(prefix));
            assert_eq!(bench.checks.usable(CLOSED[2], &|| true), added[1]);
            added.map(|added| added.is_some())
        });
        for _ in 0..3 {
            while bench.check_next().is_none() {
                thread::yield_now();
            }
        }
        assert_eq!(added.join().expect("no panic"), [true, true, false]);
    });
    // The search did not use the wrong one.
    assert!(!bench.checks.interrupt_search());
    // It does not wait for what is no longer wanted.
    assert_eq!(bench.checks.add(claim(&[0, 4]), &|| false), None);
}

#[test]
fn a_worker_that_lies_about_many_prefixes_stops_the_search_once() {
    let bench = Bench::new(8);
    let mut used = Refutations::new();
    // Each has a completion.
    for prefix in [&[0, 4], &[0, 5], &[1, 3]] {
        assert!(bench.add(prefix).is_some());
        used.insert(prefix.to_vec(), Refutation::search());
    }
    let honest = refuted(&query(8, CLOSED[0], 1), Refutation::search(), "honest");
    assert!(bench.checks.add(honest, &|| true).is_some());
    used.insert(CLOSED[0].to_vec(), Refutation::search());
    // One of the honest worker, and two of the other at the same time.
    assert_eq!(bench.check_next().as_deref(), Some(CLOSED[0]));
    let checks = [(); 2].map(|()| bench.checks.check_next(&|| false).expect("one"));
    let mut conclude = |check| {
        bench.checks.conclude(check, &bench.solver());
        let begins_again = bench.checks.remove_unusable(&mut used);
        (begins_again, bench.checks.check_next(&|| false).is_none())
    };
    assert_eq!(checks.map(&mut conclude), [(true, true), (false, true)]);
    assert!(used.keys().eq([CLOSED[0]]), "{used:?}");
    assert!(!bench.checks.remove_unusable(&mut used));
    let verdicts = bench.verdicts();
    let are_right = matches!(
        verdicts[..],
        [AnswerVerdict::Good, AnswerVerdict::Wrong(_), AnswerVerdict::Wrong(_)]
    );
    assert!(are_right, "{verdicts:?}");
    let state = lock(&bench.checks.state);
    assert_eq!((state.waiting_bytes, state.restarts), (0, 1));
}

#[test]
fn a_search_waits_while_many_refutations_wait() {
    let bench = Bench::new(8);
    lock(&bench.checks.state).waiting_bytes = MOST_WAITING_BYTES + 1;
    assert_eq!(bench.checks.add(claim(CLOSED[0]), &|| false), None);
    lock(&bench.checks.state).waiting_bytes = MOST_WAITING_BYTES;
    assert!(bench.add(CLOSED[0]).is_some());
}

#[test]
fn a_query_whose_refutation_takes_too_long_to_check_is_given_up() {
    let bench = Bench::new(100);
    let wide = CompletionQuery { node_limit: 0, ..query(100, &[0], 0) };
    assert!(bench.checks.add(refuted(&wide, Refutation::search(), "a"), &|| true).is_some());
    assert!(bench.check_next().is_some());
    assert!(bench.checks.remove_unusable(&mut Refutations::new()));
    assert!(bench.checks.is_uncheckable(&wide));
    let (n, solver, checks) = (100, bench.solver(), Arc::clone(&bench.checks));
    let mut solver = RemoteQuerySolver { n, solver, checks };
    let (control, asked) = (Control::default(), PrefixQuery::new(&[0], 0, 0));
    assert_eq!(solver.solve(&asked, Task::alone(&control)), QueryOutcome::GivenUp);
}

#[test]
fn a_prefix_is_refuted_by_the_multipliers_of_other_answers_while_it_is_asked_for() {
    let n = 32;
    let found = first_solution(n, Options::default(), &mut Unobserved, &mut |_| {});
    let refuted_by = |refutation: &Refutation| {
        let known = KnownMultipliers::new(n);
        known.add(refutation);
        found.refuted.keys().find(|prefix| known.refuter(prefix)().is_some())
    };
    let one = found.refuted.values().find_map(|one| Some((one, refuted_by(one)?)));
    let (refutation, prefix) = one.expect("multipliers that refute a prefix");
    let bench = Bench::new(n);
    let (solver, checks) = (bench.solver(), Arc::clone(&bench.checks));
    let mut solver = RemoteQuerySolver { n, solver, checks };
    let control = Control::default();
    let add = |refutation: Refutation| {
        let other = query(n, &[prefix.as_slice(), &[0]].concat(), 1);
        assert!(bench.checks.add(refuted(&other, refutation, "a"), &|| true).is_some());
        bench.queue.wake();
    };
    thread::scope(|scope| {
        let asked =
            scope.spawn(|| solver.solve(&PrefixQuery::new(prefix, 1, 0), Task::alone(&control)));
        while bench.open_tasks() == 0 {
            thread::yield_now();
        }
        add(refutation.clone());
        let QueryOutcome::Refuted(answer) = asked.join().expect("no panic") else {
            panic!("it is not refuted");
        };
        check_refutation(n, prefix, &answer, u64::MAX).expect("a valid refutation");
    });
    assert_eq!(bench.open_tasks(), 0);
    let checked = bench.checks.take_checked();
    assert!(checked.get(prefix).is_some(), "it was checked at once");
    // Nobody has answered the query.
    assert_eq!(bench.verdicts(), []);
}

#[test]
fn a_refutation_by_known_multipliers_that_fails_its_check_is_not_used() {
    for (n, prefix) in [(8, [0, 4]), (100, [0, 2])] {
        let bench = Bench::new(n);
        let wrong = Refutation::dual_bound(&Multipliers::none(n), true, &Refutation::search());
        // For n = 100, the search ends at the limit of work.
        assert!(!bench.checks.add_own(&prefix, &wrong, &|| true), "{n}");
        assert!(bench.checks.take_checked().is_empty());
    }
}

#[test]
fn the_checked_parts_of_a_refutation_that_cannot_be_used_are_kept() {
    let bench = Bench::new(8);
    for prefix in [CLOSED[1], CLOSED[2], &[0, 4]] {
        assert!(bench.add(prefix).is_some());
    }
    while bench.check_next().is_some() {}
    // It consists of all of them.
    let mut used = all_of(&[&[0]]);
    assert!(bench.checks.remove_unusable(&mut used));
    assert!(used.keys().eq([CLOSED[1], CLOSED[2]]), "{used:?}");
}

#[test]
fn prefixes_after_a_solution_need_no_refutation() {
    let bench = Bench::new(8);
    for prefix in [CLOSED[0], &[1, 3, 0]] {
        assert!(bench.add(prefix).is_some());
    }
    bench.checks.add_solution(&[0, 4, 7, 5, 2, 6, 1, 3]);
    assert!(bench.add(&[2, 0, 3]).is_some());
    let (checked, unchecked) = bench.checks.to_save(&all_of(&[&[1, 3, 0], &[2, 0, 3]]));
    assert!(checked.is_empty() && unchecked.keys().eq([CLOSED[0]]));
    assert_eq!(bench.check_next().as_deref(), Some(CLOSED[0]));
    assert_eq!(bench.check_next(), None);
}

#[test]
fn all_refutations_are_saved_and_those_without_a_check_are_checked_after_a_restart() {
    let bench = Bench::new(8);
    for prefix in CLOSED {
        assert!(bench.add(prefix).is_some());
    }
    assert!(bench.check_next().is_some() && bench.check_next().is_some());
    // 0 3 consists of longer ones, of which one is checked.
    let used = all_of(&[&[0, 2], &[0, 3]]);
    let (checked, unchecked) = bench.checks.to_save(&used);
    assert!(checked.keys().eq([CLOSED[0], CLOSED[1]]), "{checked:?}");
    assert!(unchecked.keys().eq([CLOSED[2]]), "{unchecked:?}");
    let wrong = all_of(&[CLOSED[2], &[0, 4]]);
    let bench = Bench::resumed(8, &checked, wrong);
    for prefix in CLOSED {
        assert!(bench.checks.usable(prefix, &|| true).is_some());
    }
    assert!(bench.check_next().is_some() && !bench.checks.interrupt_search());
    assert!(bench.check_next().is_some() && bench.checks.interrupt_search());
    assert_eq!(bench.verdicts(), []);
}

#[test]
fn a_saved_refutation_that_fails_its_check_is_removed() {
    let mut saved = all_of(&[CLOSED[0], &[0, 4]]);
    let checks = RefutationChecks::new(8, &mut saved, Refutations::new(), &mut Meter::default());
    let checks = checks.expect("no limit");
    assert!(saved.keys().eq([CLOSED[0]]), "{saved:?}");
    assert_eq!(checks.usable(&[0, 4], &|| true), None);
    let mut meter = Meter::new(None).stopped_by(&|| true);
    let stopped = RefutationChecks::new(30, &mut all_of(&[&[0]]), Refutations::new(), &mut meter);
    assert!(stopped.is_err());
}

#[test]
fn a_stopped_check_is_saved_without_it() {
    let bench = Bench::new(30);
    let long = refuted(&query(30, &[0], u64::MAX), Refutation::search(), "a");
    assert!(bench.checks.add(long, &|| true).is_some());
    let check = bench.checks.check_next(&|| true).expect("one");
    bench.checks.conclude(check, &bench.solver());
    let (checked, unchecked) = bench.checks.to_save(&all_of(&[&[0]]));
    assert!(checked.is_empty() && unchecked.keys().eq([&[0]]));
    assert_eq!(bench.verdicts(), []);
}

#[test]
fn checked_refutations_that_are_no_longer_needed_are_forgotten() {
    let (bench, mut used) = (Bench::new(8), Refutations::new());
    let mut valid = Vec::new();
    for number in 0..8_usize.pow(5) {
        let prefix: Vec<usize> = (0..5).map(|row| number / 8_usize.pow(row) % 8).collect();
        let squares: Vec<_> =
            prefix.iter().enumerate().map(|(row, &column)| Square::new(row, column)).collect();
        if first_attack(Piece::Queen, 8, &squares).is_some() {
            continue;
        }
        let one = refuted(&query(8, &prefix, 1), Refutation::search(), "a");
        bench.checks.add(one, &|| true);
        bench.check_next();
        if bench.checks.interrupt_search() {
            // It has a completion.
            bench.checks.remove_unusable(&mut used);
            lock(&bench.checks.state).restarts = 0;
            continue;
        }
        valid.push(prefix.clone());
        if valid.len() % 10 == 0 {
            used.insert(prefix, Refutation::search());
        }
        bench.checks.forget_unused(&used);
        let left = lock(&bench.checks.state).checked.len();
        assert!(left <= 101 + 2 * used.len() && left >= used.len());
    }
    assert!(valid.len() > 300, "{}", valid.len());
    let closed = |prefix| (prefix, Refutation::search());
    // Those that others consist of are kept.
    let consist = all_of(&[&valid[0][..4]]);
    let bench = Bench::resumed(8, &valid.into_iter().map(closed).collect(), Refutations::new());
    bench.checks.forget_unused(&consist);
    let checked = bench.checks.take_checked();
    let begins = |(prefix, _): (&[usize], _)| consist.contains_key(&prefix[..4]);
    assert!(!checked.is_empty() && checked.iter().all(begins));
}

#[test]
fn wrong_workers_are_quarantined_and_their_queries_go_to_others() {
    let bench = Bench::new(8);
    let stop = AtomicBool::new(false);
    let is_stopped = || stop.load(Ordering::Relaxed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime");
    // A call without capacity does not wait for a task.
    let call = |worker: &str, number, capacity, answers| {
        let holding = Vec::new();
        let call =
            ProveCall { boot: 1, number, capacity, threads: 1, holding, answers, parts: true };
        runtime.block_on(bench.queue.call(worker, call, Duration::from_secs(60)))
    };
    let ask = |prefix: &'static [usize]| {
        let (n, solver) = (8, bench.solver());
        let mut solver = RemoteQuerySolver { n, solver, checks: Arc::clone(&bench.checks) };
        let control = Control::default();
        solver.solve(&PrefixQuery::new(prefix, 1, 0), Task::alone(&control))
    };
    let solver = bench.solver();
    thread::scope(|scope| {
        let _guard = EndChecks(&bench.checks);
        let answer = |worker: &str, outcome: TaskOutcome| {
            let (task, query) = call(worker, 1, 1, Vec::new()).tasks.pop().expect("a task");
            assert!(matches!(query, TaskQuery::Completion(query) if query.prefix == [0, 4]));
            let answer = TaskAnswer { outcome, nodes: 0, programmes: 0, elapsed_s: 0.0 };
            drop(call(worker, 2, 0, vec![(task, answer)]));
        };
        let refutation = TaskOutcome::Refuted(Refutation::search());
        let asked = scope.spawn(|| ask(&[0, 4]));
        answer("liar", refutation);
        assert_eq!(asked.join().expect("no panic"), QueryOutcome::Refuted(Refutation::search()));
        assert!(call("liar", 3, 0, Vec::new()).quarantined.is_none());
        let checks = scope.spawn(|| bench.checks.run(&solver, &is_stopped));
        while !bench.checks.interrupt_search() {
            thread::yield_now();
        }
        assert!(call("liar", 4, 0, Vec::new()).quarantined.is_some());
        let mut used = all_of(&[&[0, 4]]);
        assert!(bench.checks.remove_unusable(&mut used) && used.is_empty());
        let asked = scope.spawn(|| ask(&[0, 4]));
        let solution = vec![0, 4, 7, 5, 2, 6, 1, 3];
        answer("honest", TaskOutcome::Completed(solution.clone()));
        assert_eq!(asked.join().expect("no panic"), QueryOutcome::Completed(solution));
        bench.checks.end();
        checks.join().expect("no panic");
    });
}
