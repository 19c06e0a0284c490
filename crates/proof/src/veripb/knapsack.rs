//! Proofs that no set of diagonals of one direction, with the count and the sum that are known, has
//! more than a given weight: branch and bound over the usage variables.
//!
//! At each node the linear relaxation gives a cut: a combination of the negated claim and the
//! constraints, whose coefficients are the reduced costs. If propagation cannot use it, the search
//! branches on one of the diagonals that the optimum uses in part, or on the number of diagonals
//! used before some place. (Weights are nearly linear in the place on both sides of the middle, so
//! that many sets weigh about the same; what they have in common is how many are on each side.)
//!
//! Sets can be excluded by clauses. Then the claim is that there is no other one. The search also
//! branches on the diagonals with the largest reduced costs, since all excluded sets agree on most
//! of them, and prefers the branching that leaves the fewest diagonals open: bounds are useless
//! where there are sets.

use super::relaxation::{Duals, Optimum, Outcome, PrefixBound, Relaxation};
use crate::first::{Diagonals, Item};

/// The number of items, and of places, at which branching is compared.
const CANDIDATES: usize = 5;

/// A branch: an item is in the set or not, or a bound on the number of the first items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Branch {
    Item(usize, bool),
    Prefix(PrefixBound),
}

impl Branch {
    /// Returns the contrary branch.
    pub(super) const fn contrary(self) -> Self {
        match self {
            Self::Item(item, value) => Self::Item(item, !value),
            Self::Prefix(PrefixBound { items, at_most, count }) => {
                let count = if at_most { count + 1 } else { count - 1 };
                Self::Prefix(PrefixBound { items, at_most: !at_most, count })
            }
        }
    }
}

/// A step of a proof, to be written in this order.
///
/// The bounds of prefixes are numbered like a stack: [`Self::Begin`] with a prefix pushes its
/// bound, and its [`Self::End`] removes this and all later ones and pushes the contrary bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A combination of the negated claim, the count, the sum and the bounds.
    Cut(Duals),
    /// The contrary of a branch on an item follows by propagation.
    Refuted(Branch),
    /// A proof by contradiction of the contrary of a branch begins.
    Begin(Branch),
    /// The innermost proof by contradiction ends, which was for this branch.
    End(Branch),
}

/// A linear constraint Σ a u ≥ degree on the items.
struct Row {
    coefficients: Vec<i128>,
    degree: i128,
}

/// A knapsack: Σ u = count, Σ place · u = sum, with the claim that Σ weight · u ≤ `most`, or
/// without `most` that there is no such set.
pub(super) struct Knapsack {
    pub(super) items: Vec<Item>,
    pub(super) count: i64,
    pub(super) sum: i64,
    pub(super) most: Option<i128>,
}

/// The value of an item at a node; `None` if it is not fixed.
type Values = Vec<Option<bool>>;

/// A fraction at which the relaxation begins.
type Near = Option<(i128, i128)>;

/// The limit on the number of steps was exceeded, or the claim is false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed;

struct Search<'a> {
    knapsack: &'a Knapsack,
    /// The count, the sum, the negated claim, and the bounds and cuts on the path to the node.
    rows: Vec<Row>,
    bounds: Vec<PrefixBound>,
    /// The excluded sets, by item.
    excluded: &'a [Diagonals],
    steps: Vec<Step>,
    most_steps: usize,
}

/// A node of the search.
#[derive(Clone)]
struct Node {
    values: Values,
    near: Near,
    /// The numbers of the excluded sets that these values allow.
    excluded: Vec<usize>,
}

/// The part of the knapsack that is left at a node.
struct Rest {
    free: Vec<usize>,
    relaxation: Relaxation,
    weight: i128,
}

impl Knapsack {
    /// Returns the value of the linear relaxation, rounded down; `None` if it has no solution.
    pub(super) fn relaxed(&self) -> Option<i128> {
        let (items, count, sum) = (self.items.clone(), self.count, self.sum);
        match (Relaxation { items, count, sum, bounds: Vec::new() }).solve(None)? {
            Outcome::Optimum(found) => Some(found.value.div_euclid(found.duals.objective)),
            Outcome::Infeasible(_) => None,
        }
    }

    /// Returns the steps of a proof of the claim for sets that contain the item `with`, if there is
    /// one, in at most about this number of steps. The sets `excluded`, by item, are excluded by
    /// clauses.
    pub(super) fn prove(
        &self,
        excluded: &[Diagonals],
        with: Option<usize>,
        most_steps: usize,
    ) -> Result<Vec<Step>, Failed> {
        let ones = vec![1; self.items.len()];
        let places: Vec<i128> = self.items.iter().map(|item| item.place.into()).collect();
        let mut rows = Vec::new();
        for (coefficients, degree) in [(ones, self.count), (places, self.sum)] {
            let negated = coefficients.iter().map(|coefficient| -coefficient).collect();
            rows.push(Row { coefficients, degree: degree.into() });
            rows.push(Row { coefficients: negated, degree: -i128::from(degree) });
        }
        if let Some(most) = self.most {
            let coefficients = self.items.iter().map(|item| item.weight.into()).collect();
            rows.push(Row { coefficients, degree: most + 1 });
        }
        let mut values: Values = vec![None; self.items.len()];
        if let Some(with) = with {
            values[with] = Some(true);
        }
        let (bounds, steps) = (Vec::new(), Vec::new());
        let mut search = Search { knapsack: self, rows, bounds, excluded, steps, most_steps };
        let excluded = (0..excluded.len()).collect();
        search.refute(Node { values, near: None, excluded })?;
        Ok(search.steps)
    }
}

impl Search<'_> {
    /// Adds steps that refute a node.
    fn refute(&mut self, mut node: Node) -> Result<(), Failed> {
        while self.propagate(&mut node) {
            if self.steps.len() > self.most_steps {
                return Err(Failed);
            }
            let rest = self.rest(&node.values, &self.bounds);
            let found = match rest.relaxation.solve(node.near).ok_or(Failed)? {
                Outcome::Infeasible(duals) => {
                    if !self.add_cut(&node.values, duals) {
                        return Err(Failed);
                    }
                    continue;
                }
                Outcome::Optimum(found) => found,
            };
            node.near = Some((found.duals.sum, found.duals.objective));
            if self.knapsack.most.is_some() && self.add_cut(&node.values, found.duals.clone()) {
                continue;
            }
            let branch = self.branching(&node, &rest, &found)?;
            self.refute_branch(branch, &node)?;
            self.take(branch.contrary(), &mut node.values);
        }
        Ok(())
    }

    /// Propagates the rows and the clauses that exclude sets. Returns whether there is no
    /// contradiction.
    fn propagate(&self, node: &mut Node) -> bool {
        let Node { values, excluded, .. } = node;
        loop {
            if !propagate(&self.rows, values) {
                return false;
            }
            if excluded.is_empty() {
                return true;
            }
            let with = |value: Option<bool>| -> Diagonals {
                (0..values.len()).filter(|&item| values[item] == value).collect()
            };
            let (chosen, rejected, free) = (with(Some(true)), with(Some(false)), with(None));
            excluded.retain(|&set| {
                let set = self.excluded[set];
                chosen.without(set).is_empty() && rejected.and(set).is_empty()
            });
            let Some(&set) = excluded.first() else { return true };
            let mut free = free.iter();
            match (free.next(), free.next()) {
                (None, _) => return false,
                (Some(item), None) => values[item] = Some(!self.excluded[set].contains(item)),
                _ => return true,
            }
        }
    }

    /// Adds steps that refute a branch of a node.
    fn refute_branch(&mut self, branch: Branch, node: &Node) -> Result<(), Failed> {
        let (mark, rows, bounds) = (self.steps.len(), self.rows.len(), self.bounds.len());
        self.steps.push(Step::Begin(branch));
        let mut child = node.clone();
        self.take(branch, &mut child.values);
        self.refute(child)?;
        self.rows.truncate(rows);
        self.bounds.truncate(bounds);
        let is_short = self.steps[mark + 1..].iter().all(|step| matches!(step, Step::Cut(_)));
        if is_short && matches!(branch, Branch::Item(..)) {
            self.steps.remove(mark);
            self.steps.push(Step::Refuted(branch));
        } else {
            self.steps.push(Step::End(branch));
        }
        Ok(())
    }

    /// Adds the bound of a branch, or its value.
    fn take(&mut self, branch: Branch, values: &mut Values) {
        match branch {
            Branch::Item(item, value) => values[item] = Some(value),
            Branch::Prefix(bound) => {
                self.bounds.push(bound);
                self.rows.push(Row::bound(values.len(), bound));
                // With the count, it is a bound on the number of the other items.
                let number = self.bounds.len() - 1;
                let count = if bound.at_most { -1 } else { 1 };
                let duals = Duals { objective: 0, count, sum: 0, bounds: vec![(number, -count)] };
                self.rows.push(self.row(&duals));
                self.steps.push(Step::Cut(duals));
            }
        }
    }

    /// Returns what is left under these values and bounds.
    fn rest(&self, values: &Values, bounds: &[PrefixBound]) -> Rest {
        let all = &self.knapsack.items;
        let weightless = self.knapsack.most.is_none();
        let (mut count, mut sum, mut weight) = (self.knapsack.count, self.knapsack.sum, 0);
        let (mut free, mut items) = (Vec::new(), Vec::new());
        // By item: the numbers of free and of chosen ones before it.
        let mut before = Vec::with_capacity(all.len() + 1);
        for (number, (item, value)) in all.iter().zip(values).enumerate() {
            before.push((free.len(), self.knapsack.count - count));
            match value {
                None => {
                    free.push(number);
                    items.push(if weightless { Item { weight: 0, ..*item } } else { *item });
                }
                Some(true) => {
                    count -= 1;
                    sum -= item.place;
                    weight += i128::from(item.weight);
                }
                Some(false) => {}
            }
        }
        before.push((free.len(), self.knapsack.count - count));
        let bounds = bounds.iter().map(|bound| {
            let (items, chosen) = before[bound.items];
            PrefixBound { items, count: bound.count - chosen, ..*bound }
        });
        let bounds = bounds.collect();
        Rest { free, relaxation: Relaxation { items, count, sum, bounds }, weight }
    }

    /// Returns the combination of the rows with these multipliers.
    fn row(&self, duals: &Duals) -> Row {
        let &Duals { objective, count, sum, ref bounds } = duals;
        let of = self.knapsack;
        let coefficient = |item: &Item| {
            objective * i128::from(item.weight) - count - sum * i128::from(item.place)
        };
        let mut coefficients: Vec<i128> = of.items.iter().map(coefficient).collect();
        let claimed = of.most.map_or(0, |most| objective * (most + 1));
        let mut degree = claimed - count * i128::from(of.count) - sum * i128::from(of.sum);
        for &(number, multiplier) in bounds {
            let bound = self.bounds[number];
            coefficients[..bound.items].iter_mut().for_each(|other| *other -= multiplier);
            degree -= multiplier * i128::from(bound.count);
        }
        Row { coefficients, degree }
    }

    /// Adds the cut of a dual solution. Returns whether propagation can use it; otherwise it is not
    /// added.
    fn add_cut(&mut self, values: &Values, duals: Duals) -> bool {
        let row = self.row(&duals);
        let slack = row.slack(values);
        let free = |(coefficient, value): (&i128, &Option<bool>)| {
            value.is_none() && coefficient.abs() > slack
        };
        if slack >= 0 && !row.coefficients.iter().zip(values).any(free) {
            return false;
        }
        self.rows.push(row);
        self.steps.push(Step::Cut(duals));
        true
    }

    /// Returns the branch whose refutation comes first.
    fn branching(&self, node: &Node, rest: &Rest, found: &Optimum) -> Result<Branch, Failed> {
        let values = &node.values;
        let weightless = self.knapsack.most.is_none();
        let fractional: Vec<usize> = if found.fractional.is_empty() && weightless {
            rest.free.clone()
        } else {
            found.fractional.iter().map(|&number| rest.free[number]).collect()
        };
        let mut branches: Vec<Branch> =
            fractional.iter().take(CANDIDATES).map(|&item| Branch::Item(item, false)).collect();
        if !node.excluded.is_empty() {
            branches.extend(self.costly_items(rest, found).map(|item| Branch::Item(item, false)));
        }
        // The widest gaps between places.
        let mut gaps: Vec<(i64, Branch)> = Vec::new();
        for (number, prefix) in found.prefixes.iter().enumerate() {
            if let (Some(count), Some(&next)) = (*prefix, rest.free.get(number + 1)) {
                let item = rest.free[number];
                let width = self.knapsack.items[next].place - self.knapsack.items[item].place;
                let chosen = values[..next].iter().filter(|value| **value == Some(true)).count();
                let count = count + chosen as i64;
                gaps.push((
                    -width,
                    Branch::Prefix(PrefixBound { items: next, at_most: true, count }),
                ));
            }
        }
        gaps.sort_by_key(|&(width, _)| width);
        branches.extend(gaps.into_iter().take(CANDIDATES).map(|(_, branch)| branch));
        let mut best: Option<((usize, f64, usize), Branch)> = None;
        for branch in branches {
            let bounds = [branch, branch.contrary()].map(|branch| self.bound(node, branch));
            let open = bounds.iter().flatten();
            let (bound, free) = open
                .clone()
                .fold((0.0, 0), |(bound, free), other| (bound + other.0, free + other.1));
            // With sets left, the weights hardly matter.
            let bound = if node.excluded.is_empty() { bound } else { 0.0 };
            let score = (open.count(), bound, free);
            let first = match bounds {
                [None, _] => branch,
                [_, None] => branch.contrary(),
                [Some(one), Some(other)] if one.0 > other.0 => branch.contrary(),
                _ => branch,
            };
            if best.as_ref().is_none_or(|(other, _)| score < *other) {
                best = Some((score, first));
            }
            if score.0 == 0 {
                break;
            }
        }
        best.map(|(_, branch)| branch).ok_or(Failed)
    }

    /// Returns the free items with the largest absolute reduced costs.
    fn costly_items(&self, rest: &Rest, found: &Optimum) -> impl Iterator<Item = usize> {
        let coefficients = self.row(&found.duals).coefficients;
        let mut items = rest.free.clone();
        items.sort_by_key(|&item| std::cmp::Reverse(coefficients[item].abs()));
        items.into_iter().take(CANDIDATES)
    }

    /// Returns the bound of a child and the number of its free items; `None` if it is refuted.
    fn bound(&self, node: &Node, branch: Branch) -> Option<(f64, usize)> {
        let mut node = node.clone();
        let mut bounds = self.bounds.clone();
        match branch {
            Branch::Item(item, value) => {
                node.values[item] = Some(value);
                if !self.propagate(&mut node) {
                    return None;
                }
            }
            Branch::Prefix(bound) => bounds.push(bound),
        }
        let rest = self.rest(&node.values, &bounds);
        match (rest.relaxation.solve(node.near)?, self.knapsack.most) {
            (Outcome::Infeasible(_), _) => None,
            (Outcome::Optimum(_), None) => Some((0.0, rest.free.len())),
            (Outcome::Optimum(found), Some(most)) => {
                let objective = found.duals.objective;
                let value = found.value + rest.weight * objective;
                (value >= (most + 1) * objective)
                    .then(|| (value as f64 / objective as f64, rest.free.len()))
            }
        }
    }
}

/// Propagates the rows. Returns whether there is no contradiction.
fn propagate(rows: &[Row], values: &mut Values) -> bool {
    let mut changed = true;
    while changed {
        changed = false;
        for row in rows {
            let slack = row.slack(values);
            if slack < 0 {
                return false;
            }
            for (coefficient, value) in row.coefficients.iter().zip(values.iter_mut()) {
                if value.is_none() && coefficient.abs() > slack {
                    *value = Some(*coefficient > 0);
                    changed = true;
                }
            }
        }
    }
    true
}

impl Row {
    /// Returns a bound on the number of the first items.
    fn bound(items: usize, of: PrefixBound) -> Self {
        let sign = if of.at_most { -1 } else { 1 };
        let coefficients = (0..items).map(|item| if item < of.items { sign } else { 0 }).collect();
        Self { coefficients, degree: sign * i128::from(of.count) }
    }

    /// Returns by how much the largest possible sum exceeds the degree.
    fn slack(&self, values: &Values) -> i128 {
        let largest = |(coefficient, value): (&i128, &Option<bool>)| match value {
            None => (*coefficient).max(0),
            Some(true) => *coefficient,
            Some(false) => 0,
        };
        self.coefficients.iter().zip(values).map(largest).sum::<i128>() - self.degree
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_found_exactly_for_complete_lists_of_sets() {
        let mut random = fastrand::Rng::with_seed(90);
        let (mut proved, mut long) = (0, 0);
        for case in 0..600 {
            let number = random.usize(1..=13);
            let start = random.i64(0..9);
            let places = (start..).filter(|_| random.u8(0..4) > 0).take(number).collect::<Vec<_>>();
            let most_weight = [0, 3, 80][random.usize(0..3)];
            let item = |&place: &i64| Item { place, weight: random.i64(0..=most_weight) };
            let items: Vec<Item> = places.iter().map(item).collect();
            let one: Vec<bool> = items.iter().map(|_| random.bool()).collect();
            let total = |set: &[bool], of: &dyn Fn(&Item) -> i64| -> i64 {
                items.iter().zip(set).map(|(item, &is_in)| if is_in { of(item) } else { 0 }).sum()
            };
            let [count, sum, weight] = [
                total(&one, &|_| 1),
                total(&one, &|item| item.place),
                total(&one, &|item| item.weight),
            ];
            let most = i128::from(weight) - random.i128(0..4);
            let knapsack = Knapsack { items: items.clone(), count, sum, most: Some(most) };
            let is_heavy = |set: &Vec<bool>| {
                total(set, &|_| 1) == count
                    && total(set, &|item| item.place) == sum
                    && i128::from(total(set, &|item| item.weight)) > most
            };
            let all = (0u32..1 << number).map(|bits| (0..number).map(move |i| bits >> i & 1 == 1));
            let mut sets: Vec<Vec<bool>> = all.map(Iterator::collect).filter(is_heavy).collect();
            let prove = |sets: &[Vec<bool>]| {
                let items = |set: &Vec<bool>| (0..set.len()).filter(|&item| set[item]).collect();
                let excluded: Vec<Diagonals> = sets.iter().map(items).collect();
                knapsack.prove(&excluded, None, usize::MAX)
            };
            let steps = prove(&sets);
            assert!(steps.is_ok(), "case {case}: {} sets", sets.len());
            proved += usize::from(sets.len() > 1);
            long += usize::from(sets.len() > 10);
            if !sets.is_empty() {
                sets.swap_remove(random.usize(0..sets.len()));
                assert_eq!(prove(&sets), Err(Failed), "{case}");
            }
        }
        assert!(proved > 200 && long > 20, "{proved} {long}");
    }
}
