//! The refutations that a search uses: which of them are checked, and which are needed.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::super::task_queue::Answered;
use crate::cluster::protocol::CompletionQuery;
use crate::proof::first::{CheckedRefutation, CheckedRefutationSet, Refutation};
use crate::proof::{Meter, ProofError};

/// The number of times that a search begins again; from then on it waits for each check.
pub(super) const MOST_RESTARTS: u32 = 3;

/// A refutation that is not checked.
pub(super) enum Unchecked {
    /// It waits for its check.
    Waiting(Box<PrefixRefutation>),
    /// It is being checked. The worker is `None` for a saved one.
    Checking { refutation: Refutation, worker: Option<String> },
    /// It cannot be used, but the search may have used it.
    Unusable,
}

impl Unchecked {
    pub(super) const fn refutation(&self) -> Option<&Refutation> {
        match self {
            Self::Waiting(one) => Some(&one.refutation),
            Self::Checking { refutation, .. } => Some(refutation),
            Self::Unusable => None,
        }
    }

    pub(super) fn worker(&self) -> Option<&str> {
        match self {
            Self::Waiting(one) => one.worker(),
            Self::Checking { worker, .. } => worker.as_deref(),
            Self::Unusable => None,
        }
    }
}

/// A refutation of a prefix.
pub(in super::super) struct PrefixRefutation {
    pub(in super::super) prefix: Vec<usize>,
    pub(in super::super) refutation: Refutation,
    /// The query and the answer that it is from; `None` if an earlier process has saved it.
    pub(in super::super) answered: Option<(CompletionQuery, Answered)>,
}

impl PrefixRefutation {
    /// Returns an upper bound on the memory that it takes, in bytes.
    pub(super) fn size(&self) -> usize {
        1024 + 3 * (8 * self.prefix.len() + self.refutation.as_bytes().len())
    }

    pub(super) fn worker(&self) -> Option<&str> {
        self.answered.as_ref().map(|(_, answered)| answered.worker.as_str())
    }

    pub(super) fn check(
        &self,
        n: usize,
        meter: &mut Meter<'_>,
    ) -> Result<CheckedRefutation, ProofError> {
        let Self { prefix, refutation, answered } = self;
        let most = answered.as_ref().map_or(u64::MAX, |(query, _)| most_work(query, refutation));
        CheckedRefutation::new(n, prefix, refutation.clone(), most, meter)
    }
}

/// The refutations that a search uses, at most one of each prefix.
pub(super) struct UsedRefutations {
    pub(super) unchecked: BTreeMap<Vec<usize>, Unchecked>,
    pub(super) checked: CheckedRefutationSet,
    pub(super) waiting_bytes: usize,
    /// The earliest known solution. Prefixes after it need no refutation.
    pub(super) solution: Option<Vec<usize>>,
    /// The queries whose refutations cannot be checked.
    pub(super) uncheckable: Vec<CompletionQuery>,
    /// The number of checked refutations that were kept when others were last forgotten.
    pub(super) kept: usize,
    /// The number of times that the search has begun again.
    pub(super) restarts: u32,
    /// True once no more checks are wanted.
    pub(super) ended: bool,
}

impl UsedRefutations {
    /// Creates the state without refutations of the board of size `n`.
    pub(super) fn new(n: usize) -> Self {
        Self {
            unchecked: BTreeMap::new(),
            checked: CheckedRefutationSet::new(n),
            waiting_bytes: 0,
            solution: None,
            uncheckable: Vec::new(),
            kept: 0,
            restarts: 0,
            ended: false,
        }
    }

    /// Returns whether the prefix is before the earliest known solution.
    pub(super) fn needs(&self, prefix: &[usize]) -> bool {
        self.solution.as_deref().is_none_or(|solution| prefix < solution)
    }

    pub(super) fn has_unusable(&self) -> bool {
        self.unchecked.values().any(|one| matches!(one, Unchecked::Unusable))
    }

    /// Returns whether the search waits for the check of each refutation.
    pub(super) const fn checks_first(&self) -> bool {
        self.restarts >= MOST_RESTARTS
    }

    /// Returns the refutation of this prefix that the search may use.
    pub(super) fn usable(&self, prefix: &[usize]) -> Option<&Refutation> {
        let unchecked = self.unchecked.get(prefix).filter(|_| !self.checks_first());
        unchecked.and_then(Unchecked::refutation).or_else(|| self.checked.get(prefix))
    }

    /// Adds a refutation to be checked.
    pub(super) fn add(&mut self, one: PrefixRefutation) {
        self.waiting_bytes += one.size();
        self.unchecked.insert(one.prefix.clone(), Unchecked::Waiting(Box::new(one)));
    }

    /// Forgets the waiting refutations, except those of prefixes for which `is_kept` returns true.
    pub(super) fn retain_waiting(&mut self, is_kept: impl Fn(&[usize]) -> bool) {
        let Self { unchecked, waiting_bytes, .. } = self;
        unchecked.retain(|prefix, one| match one {
            Unchecked::Waiting(one) if !is_kept(prefix) => {
                *waiting_bytes -= one.size();
                false
            }
            _ => true,
        });
    }

    /// Makes an unchecked refutation unusable or, if the search cannot have used it, removes it.
    pub(super) fn refuse(&mut self, prefix: &[usize]) {
        let refused = if self.needs(prefix) && !self.checks_first() {
            self.unchecked.insert(prefix.to_vec(), Unchecked::Unusable)
        } else {
            self.unchecked.remove(prefix)
        };
        if let Some(Unchecked::Waiting(one)) = refused {
            self.waiting_bytes -= one.size();
        }
    }

    /// Refuses all unchecked refutations of a worker that gave a wrong one, so that the search
    /// begins again only once.
    pub(super) fn refuse_all_of(&mut self, worker: &str) {
        let of_worker = self.unchecked.iter().filter(|(_, one)| one.worker() == Some(worker));
        let prefixes: Vec<_> = of_worker.map(|(prefix, _)| prefix.clone()).collect();
        prefixes.iter().for_each(|prefix| self.refuse(prefix));
    }

    /// Returns whether this refutation is being checked. One that was refused meanwhile is not, and
    /// its prefix may have another one.
    pub(super) fn is_checking(&self, prefix: &[usize], refutation: &Refutation) -> bool {
        matches!(
            self.unchecked.get(prefix),
            Some(Unchecked::Checking { refutation: other, .. }) if other == refutation
        )
    }

    /// Returns the unchecked refutations of prefixes that begin with this one.
    pub(super) fn unchecked_below<'s>(
        &'s self,
        prefix: &'s [usize],
    ) -> impl Iterator<Item = &'s Unchecked> {
        let from = self.unchecked.range::<[usize], _>((Bound::Included(prefix), Bound::Unbounded));
        from.take_while(move |(longer, _)| longer.starts_with(prefix)).map(|(_, one)| one)
    }

    /// Returns the checked refutations of prefixes that begin with this one.
    pub(super) fn checked_below(
        &self,
        prefix: &[usize],
    ) -> impl Iterator<Item = (Vec<usize>, Refutation)> {
        let below = self.checked.iter().filter(move |(longer, _)| longer.starts_with(prefix));
        below.map(|(longer, refutation)| (longer.to_vec(), refutation.clone()))
    }

    /// Returns whether a shorter prefix of this one has a refutation, so that this one probably
    /// needs none.
    fn is_covered(&self, prefix: &[usize]) -> bool {
        (1..prefix.len()).any(|length| {
            let unchecked = self.unchecked.get(&prefix[..length]);
            unchecked.and_then(Unchecked::refutation).is_some()
                || self.checked.get(&prefix[..length]).is_some()
        })
    }

    /// Returns the waiting refutation with the first prefix that is not covered or, if all are,
    /// with the first one. It then is being checked.
    pub(super) fn begin_check(&mut self) -> Option<PrefixRefutation> {
        let waiting = |(prefix, one)| matches!(one, &Unchecked::Waiting(_)).then_some(prefix);
        let mut prefixes = self.unchecked.iter().filter_map(waiting);
        let open = prefixes.clone().find(|prefix| !self.is_covered(prefix));
        let first = open.or_else(|| prefixes.next())?.clone();
        let first = self.unchecked.get_mut(&first)?;
        let (refutation, worker) = (first.refutation()?.clone(), first.worker().map(str::to_owned));
        let checking = Unchecked::Checking { refutation, worker };
        let Unchecked::Waiting(one) = std::mem::replace(first, checking) else { return None };
        self.waiting_bytes -= one.size();
        Some(*one)
    }
}

/// Returns the maximum work for checking a refutation, in the unit of certificates.
pub(super) fn most_work(query: &CompletionQuery, refutation: &Refutation) -> u64 {
    /// For each node of such a search: two to four queens are usual.
    const NODE: u64 = 8;
    /// For each linear relaxation that was allowed, and once more: as much as all of n = 62 takes,
    /// which is half a second.
    const EACH: u64 = 200_000;
    /// For an eliminated cell: a queen and a dual bound. A refutation may eliminate again all cells
    /// that were eliminated above it, which cost the solver no linear relaxation; but it has to
    /// name each cell.
    const SQUARE: u64 = 501;
    /// For each board in a search through sets of diagonals: two dual bounds and a limited search.
    const EACH_BOARD: u64 = 25_000;
    /// For the cases of such a search.
    const CASES: u64 = 2_000_000;
    let of_sets = match query.set_programmes {
        0 => 0,
        boards => EACH_BOARD.saturating_mul(boards).saturating_add(CASES),
    };
    let squares = (query.n * query.n).min(refutation.as_bytes().len()) as u64;
    EACH.saturating_mul(query.programmes.saturating_add(1))
        .saturating_add(NODE.saturating_mul(query.node_limit))
        .saturating_add(of_sets)
        .saturating_add(SQUARE * squares)
}
