use super::*;
use crate::proof::Beauty;
use crate::proof::beautiful::Subtree;
use crate::proof::first::Multipliers;
use crate::solver::beautiful::Searcher;

/// Returns a query with a search limit of a node.
fn query(n: usize, prefix: &[usize], programmes: u64) -> CompletionQuery {
    let prefix = prefix.to_vec();
    CompletionQuery {
        n,
        prefix,
        programmes,
        node_limit: 1,
        attempt: 0,
        only_dives: false,
        set_programmes: 0,
    }
}

#[test]
fn completions_and_answers_that_give_up_are_validated() {
    // The first solution of eight queens begins with 1 5 (1-based).
    let open = query(8, &[0], 2);
    let verdict = |outcome: TaskOutcome, programmes, only_dives| {
        let answer = TaskAnswer { outcome, nodes: 0, programmes, elapsed_s: 0.0 };
        validate_completion(&CompletionQuery { only_dives, ..open.clone() }, &answer)
    };
    let completed = |columns: &[usize]| verdict(TaskOutcome::Completed(columns.to_vec()), 0, false);
    assert_eq!(completed(&[0, 4, 7, 5, 2, 6, 1, 3]), AnswerVerdict::Good);
    let wrong: [&[usize]; 4] =
        [&[0, 1, 2, 3, 4, 5, 6, 7], &[0, 4, 7, 5, 2, 6, 1], &[], &[1, 3, 5, 7, 2, 0, 6, 4]];
    for columns in wrong {
        assert!(matches!(completed(columns), AnswerVerdict::Wrong(_)), "{columns:?}");
    }
    let tree = verdict(TaskOutcome::Tree(vec![]), 2, false);
    assert!(matches!(tree, AnswerVerdict::Wrong(_)));
    // A worker that gives up has used its limit, unless it was to make dives only.
    let gave_up = |programmes, only_dives| verdict(TaskOutcome::GivenUp, programmes, only_dives);
    assert_eq!(gave_up(2, false), AnswerVerdict::Good);
    assert_eq!(gave_up(1, false), AnswerVerdict::Useless);
    assert_eq!(gave_up(1, true), AnswerVerdict::Good);
}

#[test]
fn a_refutation_is_not_used_if_it_cannot_be_read_or_be_part_of_another() {
    let query = query(8, &[0, 2], 1);
    let verdict = |refutation| validate_encoding(&query, &refutation);
    let deep = |nodes| {
        let then = |then, _| Refutation::dual_bound(&Multipliers::none(8), false, &then);
        verdict((0..nodes).fold(Refutation::search(), then))
    };
    assert_eq!(deep(0), Ok(()));
    assert_eq!(deep(998), Ok(()));
    assert_eq!(deep(999), Err(AnswerVerdict::Useless));
    assert!(matches!(deep(1001), Err(AnswerVerdict::Wrong(_))));
    let of_bytes = |bytes| verdict(Refutation::from_bytes(bytes));
    assert!(matches!(of_bytes(vec![0, 0]), Err(AnswerVerdict::Wrong(_))));
    assert!(matches!(of_bytes(vec![12, 9]), Err(AnswerVerdict::Unknown(_))));
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
fn no_subtree_task_allows_more_steps_than_a_refutation() {
    let known =
        Premises::new(8, Beauty::default(), vec![true; 10], vec![], vec![]).expect("a valid task");
    let part = Subtree::new(Arc::new(known), vec![]).expect("a valid task");
    let question = SubtreeTask { part, nodes: u64::MAX, weights: Arc::new([]) };
    assert_eq!(most_steps(&question), MOST_STEPS);
}
