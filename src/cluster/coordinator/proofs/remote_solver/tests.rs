use std::sync::mpsc;
use std::thread;

use super::*;
use crate::cluster::protocol::ProveCall;
use crate::proof::Beauty;
use crate::proof::beautiful::Subtree;
use crate::proof::first::Multipliers;
use crate::solver::beautiful::Searcher;
use crate::solver::first::{Control, query_solver};

/// Returns a query with a search limit of a node.
fn query(n: usize, prefix: &[usize], programmes: u64) -> CompletionQuery {
    let prefix = prefix.to_vec();
    CompletionQuery { n, prefix, programmes, node_limit: 1, attempt: 0 }
}

/// Validates an answer. A refutation is kept exactly if it is good.
fn validate(
    query: &CompletionQuery,
    outcome: &TaskOutcome,
    meter: &mut Meter<'_>,
) -> (AnswerVerdict, QueryOutcome) {
    let checked = Mutex::new(CheckedRefutationSet::new(query.n));
    let validated = validate_completion(query, outcome, &checked, meter);
    let is_kept = !lock(&checked).is_empty();
    let is_good_refutation = matches!(&validated, (AnswerVerdict::Good, QueryOutcome::Refuted(_)));
    assert_eq!(is_kept, is_good_refutation, "{validated:?}");
    validated
}

#[test]
fn correct_answers_are_accepted_and_wrong_ones_refused() {
    // The first solution of eight queens begins with 1 5 (1-based).
    let open = query(8, &[0], 1);
    let closed = query(8, &[0, 2], 1);
    let outcome = |query: &CompletionQuery| {
        let control = Control::default();
        let question = PrefixQuery::new(&query.prefix, 100, 0);
        query_solver(query.n, &[], &[]).solve(&question, Task::alone(&control))
    };
    let (completed, refuted) = (outcome(&open), outcome(&closed));
    assert!(matches!(completed, QueryOutcome::Completed(_)));
    assert!(matches!(refuted, QueryOutcome::Refuted(_)));
    let validated = |query, outcome: &QueryOutcome| {
        validate(query, &outcome.clone().into(), &mut Meter::default()).0
    };
    assert_eq!(validated(&open, &completed), AnswerVerdict::Good);
    assert_eq!(validated(&closed, &refuted), AnswerVerdict::Good);
    assert!(matches!(validated(&open, &refuted), AnswerVerdict::Wrong(_)));
    assert!(matches!(validated(&closed, &completed), AnswerVerdict::Wrong(_)));
    let attacked = QueryOutcome::Completed((0..8).collect());
    assert!(matches!(validated(&open, &attacked), AnswerVerdict::Wrong(_)));
    let nonsense = QueryOutcome::Refuted(Refutation::from_bytes(vec![0, 0]));
    assert!(matches!(validated(&closed, &nonsense), AnswerVerdict::Wrong(_)));
    // An unknown step is not a wrong answer.
    let newer = QueryOutcome::Refuted(Refutation::from_bytes(vec![10, 9]));
    assert!(
        matches!(validated(&closed, &newer), AnswerVerdict::Unknown(why) if why.contains("kind 10"))
    );
    // A refutation that only demands a search must not keep the checker busy for ever.
    let wide = query(100, &[0], 0);
    assert_eq!(
        validated(&wide, &QueryOutcome::Refuted(Refutation::search())),
        AnswerVerdict::Useless
    );
    let tree = validate(&closed, &TaskOutcome::Tree(vec![]), &mut Meter::default());
    assert!(matches!(tree.0, AnswerVerdict::Wrong(_)));
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
    let validated = |refutation| {
        let outcome = QueryOutcome::Refuted(refutation).into();
        validate(&query, &outcome, &mut Meter::default()).0
    };
    assert_eq!(most_work(&query, &Refutation::search()), 400_000 + 8 + 501);
    assert_eq!(most_work(&query, &long(850)), 400_000 + 8 + 501 * 144);
    assert_eq!(validated(long(850)), AnswerVerdict::Good);
    assert_eq!(validated(long(950)), AnswerVerdict::Useless);
}

#[test]
fn a_subtree_is_answered_by_a_valid_tree_or_a_solution_below_it() {
    let alive = vec![true; 10];
    let known =
        Arc::new(Premises::new(8, Beauty::default(), alive, vec![], vec![]).expect("a valid task"));
    let question = |queens: &[usize], nodes| {
        let part = Subtree::new(Arc::clone(&known), queens.to_vec()).expect("a valid task");
        SubtreeTask { part, nodes, weights: Arc::new([]) }
    };
    let mut searcher = Searcher::default();
    let mut searched =
        |question: &SubtreeTask| searcher.search(question, &CancelToken::default()).into();
    let checkers = Checkers::default();
    let validated = |question: &SubtreeTask, outcome: &TaskOutcome| {
        let mut answer =
            TaskAnswer { outcome: outcome.clone(), nodes: 9, programmes: 0, elapsed_s: 0.0 };
        let mut meter = Meter::new(Some(most_steps(question)));
        checkers.with(&known, |checker| validate_part(checker, question, &mut answer, &mut meter))
    };
    // Queens in the corner and in the third column of the second row have no solution; the
    // queen in the corner alone has one.
    let (open, closed, short) = (question(&[0], 999), question(&[0, 10], 999), question(&[0], 1));
    let (solution, tree, holes) = (searched(&open), searched(&closed), searched(&short));
    let good = |validated: &(AnswerVerdict, Option<ValidatedAnswer>)| {
        validated.0 == AnswerVerdict::Good && validated.1.is_some()
    };
    assert!(good(&validated(&open, &solution)) && good(&validated(&closed, &tree)));
    let reached = validated(&short, &holes);
    assert!(
        matches!(reached, (AnswerVerdict::Good, Some(ValidatedAnswer::Tree(_, holes, 1))) if !holes.is_empty())
    );
    // An answer with open nodes that used fewer nodes than were allowed is incomplete.
    assert_eq!(validated(&open, &holes), (AnswerVerdict::Useless, None));
    assert_eq!(validated(&closed, &TaskOutcome::GivenUp), (AnswerVerdict::Useless, None));
    let TaskOutcome::Tree(mut altered) = tree else { panic!("{tree:?}") };
    altered[0] ^= 1;
    let attacked = TaskOutcome::Completed((0..8).collect());
    for lie in [&solution, &TaskOutcome::Tree(altered), &TaskOutcome::Tree(vec![]), &attacked] {
        assert!(matches!(validated(&closed, lie), (AnswerVerdict::Wrong(_), None)), "{lie:?}");
    }
    let newer = TaskOutcome::Tree(vec![127]);
    assert!(
        matches!(validated(&closed, &newer), (AnswerVerdict::Unknown(why), None) if why.contains("kind 127"))
    );
}

#[test]
fn an_answer_of_unbounded_work_ends_at_the_coordinators_own_limit() {
    // Two bytes make the checker try everything, on a board where that never ends; the query
    // allows it all.
    let query = query(128, &[], u64::MAX);
    let everything = TaskOutcome::Refuted(Refutation::search());
    let mut meter = Meter::new(Some(100_000));
    assert_eq!(validate(&query, &everything, &mut meter).0, AnswerVerdict::Useless);
    assert!(meter.work() < 200_000, "{}", meter.work());
    // The solver may also stop the check.
    let mut stopped = Meter::new(None).stopped_by(&|| true);
    assert_eq!(validate(&query, &everything, &mut stopped).0, AnswerVerdict::Useless);
    // No query allows more steps than this.
    let known =
        Premises::new(8, Beauty::default(), vec![true; 10], vec![], vec![]).expect("a valid task");
    let part = Subtree::new(Arc::new(known), vec![]).expect("a valid task");
    let question = SubtreeTask { part, nodes: u64::MAX, weights: Arc::new([]) };
    assert_eq!(most_steps(&question), MOST_STEPS);
}

/// No observer.
struct NoObserver;

impl AnswerObserver for NoObserver {
    fn validated(&self, _: &Answered, _: &AnswerVerdict, _: Duration) {}
}

#[test]
fn only_refutations_wait_for_the_checks_of_others() {
    /// The time after which the test fails.
    const PATIENCE: Duration = Duration::from_secs(60);
    let queue = Arc::new(TaskQueue::new());
    let permits = Arc::new(CheckPermits { free: Mutex::new(0), released: Condvar::new() });
    let ask = |prefix: &[usize]| {
        let solver = RemoteSolver {
            job: JobHash::from_bytes([7; 16]),
            priority: 0,
            queue: Arc::clone(&queue),
            permits: Arc::clone(&permits),
            listener: Arc::new(NoObserver),
        };
        let (query, (sender, accepted)) = (query(8, prefix, 1), mpsc::channel());
        thread::spawn(move || {
            let asked = solver.ask(TaskQuery::Completion(query), &|| true, |answer| {
                (AnswerVerdict::Good, answer.outcome.clone())
            });
            sender.send(asked)
        });
        accepted
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime");
    let mut number = 0;
    let mut call = |answers| {
        number += 1;
        let (capacity, holding) = (1, Vec::new());
        let call =
            ProveCall { boot: 1, number, capacity, threads: 1, holding, answers, parts: true };
        runtime.block_on(queue.call("a", call, PATIENCE))
    };
    let mut answer = |prefix: &[usize], outcome: TaskOutcome| {
        let accepted = ask(prefix);
        let reply = call(Vec::new());
        let (task, _) = reply.tasks.first().expect("a task").clone();
        let answer = TaskAnswer { outcome, nodes: 0, programmes: 0, elapsed_s: 0.0 };
        drop(call(vec![(task, answer)]));
        accepted
    };
    let refutation = TaskOutcome::Refuted(Refutation::search());
    let refuted = answer(&[0, 2], refutation.clone());
    for outcome in [TaskOutcome::Completed(vec![0, 4, 7, 5, 2, 6, 1, 3]), TaskOutcome::GivenUp] {
        let accepted = answer(&[0], outcome.clone());
        let accepted = accepted.recv_timeout(PATIENCE).expect("no check holds it up");
        assert_eq!(accepted, Some((AnswerVerdict::Good, outcome)));
    }
    assert!(refuted.try_recv().is_err(), "there was no permit for the check");
    *lock(&permits.free) += 1;
    permits.released.notify_one();
    let refuted = refuted.recv_timeout(PATIENCE).expect("there is a permit");
    assert_eq!(refuted, Some((AnswerVerdict::Good, refutation)));
}
