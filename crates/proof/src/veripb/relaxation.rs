//! The linear relaxation of a knapsack with an exact count and an exact sum, and with bounds on the
//! counts of its first items: max Σ y u, Σ u = k, Σ p u = S, 0 ≤ u ≤ 1.
//!
//! If the bounds in a set of *active* ones hold with equality, they divide the items into intervals
//! of known counts. The dual is then min over β of g(β) = β S + Σ (the largest y − β p of each
//! interval, as many as its count), a convex piecewise linear function. Kelley's cutting-plane
//! method minimises it in exact integers: each choice of items is a line below g, and the next β is
//! where the lines of the two best choices intersect.

use crate::first::Item;

/// A bound on the number of the first items that are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PrefixBound {
    /// The number of items that the bound is about.
    pub(super) items: usize,
    /// At most `count` of them if this is set, otherwise at least.
    pub(super) at_most: bool,
    pub(super) count: i64,
}

/// A knapsack.
#[derive(Clone, Debug)]
pub(super) struct Relaxation {
    /// Sorted by place.
    pub(super) items: Vec<Item>,
    pub(super) count: i64,
    pub(super) sum: i64,
    pub(super) bounds: Vec<PrefixBound>,
}

/// Multipliers of the constraints: of the objective, the count, the sum, and the bounds. They bound
/// the objective: `objective` · y − `count` − `sum` · p, less the multipliers of the bounds on an
/// item, is its reduced cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Duals {
    pub(super) objective: i128,
    pub(super) count: i128,
    pub(super) sum: i128,
    /// Bounds by their number in the relaxation, each with its multiplier, which is not negative
    /// for `at_most` and not positive otherwise.
    pub(super) bounds: Vec<(usize, i128)>,
}

/// The result of a relaxation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// There is no solution, as these multipliers show.
    Infeasible(Duals),
    Optimum(Optimum),
}

/// An optimum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Optimum {
    pub(super) duals: Duals,
    /// The value times the multiplier of the objective.
    pub(super) value: i128,
    /// The items that the optimum, a mixture of two choices, contains in part.
    pub(super) fractional: Vec<usize>,
    /// By item: the number of chosen items up to it, rounded down; `None` if it is an integer.
    pub(super) prefixes: Vec<Option<i64>>,
}

/// A choice of items: its weight, and how far the sum exceeds that of its places.
#[derive(Clone, Debug)]
struct Choice {
    items: Vec<usize>,
    weight: i128,
    slope: i128,
}

/// Consecutive items of which a known number is chosen.
#[derive(Clone, Copy, Debug)]
struct Interval {
    begin: usize,
    end: usize,
    count: usize,
}

/// The reason why active bounds cannot hold with equality.
enum Misfit {
    /// This bound is not active.
    Slack(usize),
    /// The bounds contradict each other or the count.
    Infeasible(Duals),
    /// The count alone has no solution.
    Count,
}

impl Choice {
    /// Returns the value of its line at β = `beta` / `denominator`, times `denominator`.
    fn at(&self, (beta, denominator): (i128, i128)) -> i128 {
        self.weight * denominator + beta * self.slope
    }
}

/// A minimum of the dual: two optimal choices of which a mixture has the sum, β as a fraction, and
/// the items in which the choices differ. Without choices there is no solution, as β shows.
type Minimum = (Option<(Choice, Choice)>, (i128, i128), Vec<usize>);

/// The number of times that the set of active bounds is changed, at most.
const CHANGES: usize = 8;

impl Relaxation {
    /// Solves the relaxation; `None` if the count alone has no solution. `near` is a fraction β at
    /// which to begin.
    pub(super) fn solve(&self, near: Option<(i128, i128)>) -> Option<Outcome> {
        let mut active: Vec<usize> = Vec::new();
        for _ in 0..CHANGES {
            let intervals = match self.intervals(&active) {
                Ok(intervals) => intervals,
                Err(Misfit::Slack(bound)) => {
                    active.retain(|&other| other != bound);
                    continue;
                }
                Err(Misfit::Infeasible(duals)) => return Some(Outcome::Infeasible(duals)),
                Err(Misfit::Count) => return None,
            };
            let (found, beta, fractional) = self.solve_intervals(&intervals, near);
            let duals = match self.duals(&intervals, &active, beta) {
                Ok(duals) => duals,
                Err(wrong) => {
                    active.retain(|&bound| bound != wrong);
                    continue;
                }
            };
            let Some((low, high)) = found else { return Some(Outcome::Infeasible(duals)) };
            let counts = prefix_counts(self.items.len(), &low, &high);
            let violated = (0..self.bounds.len()).find(|bound| {
                let PrefixBound { items, at_most, count } = self.bounds[*bound];
                let (taken, parts) = counts[items];
                let difference = taken - i128::from(count) * parts;
                if at_most { difference > 0 } else { difference < 0 }
            });
            if let Some(violated) = violated.filter(|violated| !active.contains(violated)) {
                active.push(violated);
                active.sort_by_key(|&bound| self.bounds[bound].items);
                continue;
            }
            let value = low.at(beta).max(high.at(beta));
            let prefixes = counts[1..].iter().map(|&(taken, parts)| {
                (taken % parts != 0).then(|| taken.div_euclid(parts) as i64)
            });
            let prefixes = prefixes.collect();
            return Some(Outcome::Optimum(Optimum { duals, value, fractional, prefixes }));
        }
        // Without the bounds, the relaxation is weaker but valid.
        let without = Self { bounds: Vec::new(), ..self.clone() };
        if self.bounds.is_empty() { None } else { without.solve(near) }
    }

    /// Returns the intervals between the active bounds, sorted by item.
    fn intervals(&self, active: &[usize]) -> Result<Vec<Interval>, Misfit> {
        let mut intervals = Vec::new();
        let mut begin = None;
        for end in active.iter().map(|&bound| Some(bound)).chain([None]) {
            let (first, before) = begin.map_or((0, 0), |bound| self.prefix(Some(bound)));
            let (last, count) = self.prefix(end);
            let inside = usize::try_from(count - before).ok();
            let Some(inside) = inside.filter(|&inside| inside <= last - first) else {
                return Err(self.misfit(begin, end, count < before));
            };
            intervals.push(Interval { begin: first, end: last, count: inside });
            begin = end;
        }
        Ok(intervals)
    }

    /// Returns the number of items of a bound, or of all items, and how many of them are chosen.
    fn prefix(&self, bound: Option<usize>) -> (usize, i64) {
        bound.map_or((self.items.len(), self.count), |bound| {
            let PrefixBound { items, count, .. } = self.bounds[bound];
            (items, count)
        })
    }

    /// Returns why the items between two bounds, or between one and an end, do not fit: too few are
    /// chosen if `negative` is set, otherwise too many.
    fn misfit(&self, begin: Option<usize>, end: Option<usize>, negative: bool) -> Misfit {
        let is_at_most = |bound: usize| self.bounds[bound].at_most;
        // Bounds in the other direction cannot both hold with equality.
        if let Some(slack) = begin.filter(|&bound| is_at_most(bound) == negative) {
            return Misfit::Slack(slack);
        }
        if let Some(slack) = end.filter(|&bound| is_at_most(bound) != negative) {
            return Misfit::Slack(slack);
        }
        if begin.is_none() && end.is_none() {
            return Misfit::Count;
        }
        let sign = if negative { 1 } else { -1 };
        let count = if end.is_none() { sign } else { 0 };
        let of_begin = begin.map(|bound| (bound, -sign));
        let bounds = of_begin.into_iter().chain(end.map(|bound| (bound, sign))).collect();
        Misfit::Infeasible(Duals { objective: 0, count, sum: 0, bounds })
    }

    /// Minimises the dual.
    fn solve_intervals(&self, intervals: &[Interval], near: Option<(i128, i128)>) -> Minimum {
        let mut low = self.choice(intervals.iter().flat_map(|of| of.begin..of.begin + of.count));
        let mut high = self.choice(intervals.iter().flat_map(|of| of.end - of.count..of.end));
        if low.slope < 0 {
            return (None, (1, 0), Vec::new());
        }
        if high.slope > 0 {
            return (None, (-1, 0), Vec::new());
        }
        let mut next = near;
        loop {
            let beta = next.take().unwrap_or_else(|| intersection(&low, &high));
            let best = self.heaviest(intervals, beta);
            if best.slope == 0 {
                return (Some((best.clone(), best)), beta, Vec::new());
            }
            let value = low.at(beta);
            if value == high.at(beta) && best.at(beta) <= value {
                let fractional = difference(self.items.len(), &low, &high);
                return (Some((low, high)), beta, fractional);
            }
            if best.slope > 0 {
                low = best;
            } else {
                high = best;
            }
        }
    }

    fn choice(&self, items: impl Iterator<Item = usize>) -> Choice {
        let items: Vec<usize> = items.collect();
        let weight = items.iter().map(|&item| i128::from(self.items[item].weight)).sum();
        let places: i64 = items.iter().map(|&item| self.items[item].place).sum();
        Choice { items, weight, slope: (self.sum - places).into() }
    }

    /// Returns the items of an interval with their values y − β p, times the denominator, the
    /// largest first, divided where the interval's count ends.
    fn sorted(&self, of: Interval, (beta, denominator): (i128, i128)) -> Vec<(i128, usize)> {
        let value = |item: usize| {
            let Item { place, weight } = self.items[item];
            (beta * i128::from(place) - denominator * i128::from(weight), item)
        };
        let mut values: Vec<(i128, usize)> = (of.begin..of.end).map(value).collect();
        if of.count > 0 && of.count < values.len() {
            values.select_nth_unstable(of.count - 1);
        }
        values
    }

    fn heaviest(&self, intervals: &[Interval], beta: (i128, i128)) -> Choice {
        let chosen = intervals
            .iter()
            .flat_map(|&of| self.sorted(of, beta).into_iter().take(of.count).map(|(_, item)| item));
        self.choice(chosen)
    }

    /// Returns the multipliers for this β. If a bound would need one of the wrong sign, returns its
    /// number.
    fn duals(
        &self,
        intervals: &[Interval],
        active: &[usize],
        beta: (i128, i128),
    ) -> Result<Duals, usize> {
        /// A value larger than all that occur.
        const NONE: i128 = i128::MAX / 4;
        // For each interval, the multiplier of its count is between the least value that is chosen
        // and the largest that is not.
        let mut ranges = intervals.iter().map(|&of| {
            let values = self.sorted(of, beta);
            let least = values[..of.count].iter().map(|&(value, _)| -value).min();
            let most = values[of.count..].iter().map(|&(value, _)| -value).max();
            (most.unwrap_or(-NONE), least.unwrap_or(NONE))
        });
        let mut allowed = vec![ranges.next().unwrap_or((0, 0))];
        for ((least, most), &bound) in ranges.zip(active) {
            let (before_least, before_most) = allowed[allowed.len() - 1];
            let range = if self.bounds[bound].at_most {
                (least, most.min(before_most))
            } else {
                (least.max(before_least), most)
            };
            if range.0 > range.1 {
                return Err(bound);
            }
            allowed.push(range);
        }
        // From the last interval backwards.
        let pick = |(least, most): (i128, i128)| {
            if most < NONE {
                most
            } else if least > -NONE {
                least
            } else {
                0
            }
        };
        let mut alpha = pick(allowed[allowed.len() - 1]);
        let count = alpha;
        let mut bounds = Vec::new();
        for (range, &bound) in allowed.iter().zip(active).rev() {
            let (least, most) = *range;
            let before =
                if self.bounds[bound].at_most { alpha.max(least) } else { alpha.min(most) };
            bounds.push((bound, before - alpha));
            alpha = before;
        }
        Ok(Duals { objective: beta.1, count, sum: beta.0, bounds })
    }
}

/// Returns the β where the lines of two choices intersect, with a positive denominator.
fn intersection(low: &Choice, high: &Choice) -> (i128, i128) {
    let (beta, denominator) = (high.weight - low.weight, low.slope - high.slope);
    if denominator == 0 {
        return (0, 1);
    }
    let divisor = gcd(beta.unsigned_abs(), denominator.unsigned_abs()) as i128;
    (beta / divisor, denominator / divisor)
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns the items that are in one of two choices only.
fn difference(items: usize, low: &Choice, high: &Choice) -> Vec<usize> {
    let mut choices = vec![0u8; items];
    low.items.iter().for_each(|&item| choices[item] += 1);
    high.items.iter().for_each(|&item| choices[item] += 2);
    (0..items).filter(|&item| choices[item] == 1 || choices[item] == 2).collect()
}

/// Returns the number of items in the mixture of two choices that has the sum, among the first
/// 0, 1, 2 … items, as a numerator and a positive denominator.
fn prefix_counts(items: usize, low: &Choice, high: &Choice) -> Vec<(i128, i128)> {
    let (of_low, of_high) = match (-high.slope, low.slope) {
        (0, 0) => (1, 0),
        parts => parts,
    };
    let mut parts = vec![0i128; items];
    low.items.iter().for_each(|&item| parts[item] += of_low);
    high.items.iter().for_each(|&item| parts[item] += of_high);
    let mut counts = vec![(0, of_low + of_high)];
    for part in parts {
        counts.push((counts[counts.len() - 1].0 + part, of_low + of_high));
    }
    counts
}
