//! A Markov chain on the permutations of n queens: one queen in each row and column, which swap
//! their columns.
//!
//! The *energy* of a permutation is the number of pairs of queens on a common diagonal, so that the
//! solutions have energy 0. At the inverse temperature β, a [`SwapChain`] leaves the distribution
//! in which a permutation has a weight of exp(−β · energy) invariant (Metropolis et al., "Equation
//! of state calculations by fast computing machines", 1953; Hastings, "Monte Carlo sampling methods
//! using Markov chains and their applications", 1970).
//!
//! A proposal swaps the queens of two rows. When few queens are attacked, a swap of two that are
//! not is nearly always rejected, so that every second proposal takes its first row from a list of
//! the attacks. With W entries in the list, of which w are of the two queens, the pair is proposed
//! with probability (n w + 2 W) / (2 n² W), or 2 / n² if there is no attack, and Hastings' ratio
//! corrects for the difference between a swap and its reversal.
//!
//! Two queens that attack each other are not swapped: they would attack each other again, along the
//! other direction. This excludes a swap together with its reversal, so that the distribution stays
//! invariant. (Some permutations can then not be left, such as the one with all queens on a
//! diagonal, but importance sampling does not need a chain that reaches every permutation.)

use fastrand::Rng;

/// One diagonal.
#[derive(Clone, Copy, Debug, Default)]
struct Diagonal {
    /// The number of its queens.
    queens: u16,
    /// The exclusive or of their rows: the row of the queen if there is one.
    rows: u16,
}

/// The change of a swap.
#[derive(Clone, Copy, Debug)]
struct Change {
    energy: i32,
    /// The change of the number of entries in the list of attacks.
    attacks: i32,
    /// The entries of the two queens before and after the swap.
    entries: [u32; 2],
}

impl Change {
    /// Removes a queen from a diagonal with `others` other queens.
    fn remove(&mut self, others: u16) {
        self.energy -= i32::from(others);
        self.attacks -= i32::from(others > 0) + i32::from(others == 1);
        self.entries[0] += u32::from(others > 0);
    }

    /// Adds a queen to a diagonal with `others` queens.
    fn add(&mut self, others: u16) {
        self.energy += i32::from(others);
        self.attacks += i32::from(others > 0) + i32::from(others == 1);
        self.entries[1] += u32::from(others > 0);
    }
}

/// The Boltzmann factors of an inverse temperature.
struct BoltzmannFactors {
    beta: f64,
    /// exp(−β d) for the d from −`REACH` to `REACH`.
    table: [f64; 2 * Self::REACH as usize + 1],
}

impl BoltzmannFactors {
    /// The largest change of energy in the table. Larger ones are rare.
    const REACH: i32 = 12;

    fn new(beta: f64) -> Self {
        let mut table = [1.0; 2 * Self::REACH as usize + 1];
        let (rise, fall) = ((-beta).exp(), beta.exp());
        let middle = Self::REACH as usize;
        for d in 1..=middle {
            table[middle + d] = table[middle + d - 1] * rise;
            table[middle - d] = table[middle - d + 1] * fall;
        }
        Self { beta, table }
    }

    fn of(&self, energy: i32) -> f64 {
        // A sum below 0 becomes an index beyond the table.
        let factor = self.table.get((Self::REACH + energy) as usize);
        factor.copied().unwrap_or_else(|| (-self.beta * f64::from(energy)).exp())
    }
}

/// A permutation that changes by random swaps. A step takes about 40 ns at any board size.
#[derive(Clone, Debug)]
pub(super) struct SwapChain {
    /// The column of the queen in each row.
    columns: Vec<u16>,
    /// The diagonals of constant row + column at even indices, and of constant row − column at odd
    /// ones.
    diagonals: Vec<Diagonal>,
    /// The list of attacks: 2 · row + direction for each queen and each direction in which another
    /// queen is on its diagonal. The first `attacks` values count; there are 2 n places.
    list: Vec<u16>,
    attacks: usize,
    /// The position of each entry in the list.
    positions: Vec<u16>,
    energy: i64,
}

/// The largest n of a [`SwapChain`]: entries of its list have 16 bits.
const MAX_SIZE: usize = 1 << 15;

impl SwapChain {
    /// Creates the chain at a uniformly random permutation of `n` queens, from 2 to 32768.
    pub(super) fn new(n: usize, rng: &mut Rng) -> Self {
        assert!((2..=MAX_SIZE).contains(&n), "n = {n}");
        let mut columns: Vec<u16> = (0..n).map(|column| column as u16).collect();
        rng.shuffle(&mut columns);
        let mut chain = Self {
            columns: columns.clone(),
            diagonals: vec![Diagonal::default(); 4 * n],
            list: vec![0; 2 * n],
            attacks: 0,
            positions: vec![0; 2 * n],
            energy: 0,
        };
        for (row, column) in columns.into_iter().enumerate() {
            for diagonal in chain.diagonals_of(row, column.into()) {
                chain.energy += i64::from(chain.diagonals[diagonal].queens);
                chain.add(row, diagonal);
            }
        }
        chain
    }

    /// Returns the number of pairs of queens on a common diagonal.
    pub(super) fn energy(&self) -> i64 {
        self.energy
    }

    /// Makes `steps` steps at the inverse temperature `beta`.
    pub(super) fn advance(&mut self, beta: f64, steps: usize, rng: &mut Rng) {
        let factors = BoltzmannFactors::new(beta);
        for _ in 0..steps {
            self.step(&factors, rng);
        }
    }

    /// Returns the indices of the two diagonals of a square.
    fn diagonals_of(&self, row: usize, column: usize) -> [usize; 2] {
        [2 * (row + column), 2 * (self.columns.len() - 1 + row - column) + 1]
    }

    fn step(&mut self, factors: &BoltzmannFactors, rng: &mut Rng) {
        let [i, j] = self.propose(rng);
        let (a, b) = (usize::from(self.columns[i]), usize::from(self.columns[j]));
        // Also for i = j.
        if i + a == j + b || i + b == j + a {
            return;
        }
        let from = [self.diagonals_of(i, a), self.diagonals_of(j, b)];
        let to = [self.diagonals_of(i, b), self.diagonals_of(j, a)];
        // The eight diagonals differ.
        let mut change = Change { energy: 0, attacks: 0, entries: [0; 2] };
        for pair in 0..2 {
            for direction in 0..2 {
                change.remove(self.diagonals[from[pair][direction]].queens - 1);
                change.add(self.diagonals[to[pair][direction]].queens);
            }
        }
        // The probability of a proposal as a fraction, without the common factor 1 / 2 n².
        let n = self.columns.len() as f64;
        let probability = |entries: u32, attacks: f64| {
            if attacks > 0.0 {
                (f64::from(entries) * n + 2.0 * attacks, attacks)
            } else {
                (4.0, 1.0)
            }
        };
        let attacks = self.attacks as f64;
        let (forward, forward_whole) = probability(change.entries[0], attacks);
        let (back, back_whole) =
            probability(change.entries[1], attacks + f64::from(change.attacks));
        // The ratio without divisions.
        let (accept, whole) =
            (factors.of(change.energy) * back * forward_whole, forward * back_whole);
        if accept < whole && rng.f64() * whole >= accept {
            return;
        }
        for (row, [sum, difference]) in [(i, from[0]), (j, from[1])] {
            self.remove(row, sum);
            self.remove(row, difference);
        }
        for (row, [sum, difference]) in [(i, to[0]), (j, to[1])] {
            self.add(row, sum);
            self.add(row, difference);
        }
        self.columns.swap(i, j);
        self.energy += i64::from(change.energy);
    }

    /// Returns two random rows: the first one from the list of attacks in half of the cases, if
    /// there are any. (The multiplications favour some rows by less than one part in a million.)
    fn propose(&self, rng: &mut Rng) -> [usize; 2] {
        const HALF: u64 = (1 << 31) - 1;
        let bits = rng.u64(..);
        let n = self.columns.len() as u64;
        let (low, high) = (bits & HALF, bits >> 32);
        // Both are computed, so that there is no branch that is taken at random.
        let entry = self.list[((low * self.attacks as u64) >> 31) as usize];
        let any = ((low * n) >> 31) as usize;
        let is_attacked = (bits >> 31 & 1 == 1) & (self.attacks > 0);
        let first = std::hint::select_unpredictable(is_attacked, usize::from(entry / 2), any);
        [first, ((high * n) >> 32) as usize]
    }

    /// Adds the queen of a row to a diagonal.
    fn add(&mut self, row: usize, diagonal: usize) {
        let Diagonal { queens, rows } = self.diagonals[diagonal];
        let (row, direction) = (row as u16, (diagonal % 2) as u16);
        if queens == 1 {
            self.insert(2 * rows + direction);
        }
        if queens > 0 {
            self.insert(2 * row + direction);
        }
        self.diagonals[diagonal] = Diagonal { queens: queens + 1, rows: rows ^ row };
    }

    /// Removes the queen of a row from a diagonal.
    fn remove(&mut self, row: usize, diagonal: usize) {
        let Diagonal { queens, rows } = self.diagonals[diagonal];
        let (row, direction) = (row as u16, (diagonal % 2) as u16);
        if queens > 1 {
            self.delete(2 * row + direction);
        }
        if queens == 2 {
            self.delete(2 * (rows ^ row) + direction);
        }
        self.diagonals[diagonal] = Diagonal { queens: queens - 1, rows: rows ^ row };
    }

    /// Appends an entry to the list of attacks.
    fn insert(&mut self, entry: u16) {
        self.positions[usize::from(entry)] = self.attacks as u16;
        self.list[self.attacks] = entry;
        self.attacks += 1;
    }

    /// Replaces an entry of the list of attacks by the last one.
    fn delete(&mut self, entry: u16) {
        self.attacks -= 1;
        let last = self.list[self.attacks];
        let position = self.positions[usize::from(entry)];
        self.list[usize::from(position)] = last;
        self.positions[usize::from(last)] = position;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the energy and the sorted list of attacks of a permutation, by their definition.
    fn defined(columns: &[u16]) -> (i64, Vec<u16>) {
        let (mut energy, mut list) = (0, Vec::new());
        for (i, a) in columns.iter().enumerate() {
            let mut attacked = [false; 2];
            for (j, b) in columns.iter().enumerate().filter(|(j, _)| *j != i) {
                let (a, b) = (usize::from(*a), usize::from(*b));
                let shared = [i + a == j + b, i + b == j + a];
                energy += shared.iter().filter(|shared| **shared).count() as i64;
                attacked = [attacked[0] | shared[0], attacked[1] | shared[1]];
            }
            list.extend((0..2).filter(|d| attacked[*d]).map(|d| (2 * i + d) as u16));
        }
        (energy / 2, list)
    }

    #[test]
    fn the_energy_and_the_attacks_agree_with_their_definition_after_every_step() {
        let mut rng = Rng::with_seed(5);
        for n in [2, 3, 4, 7, 12, 33] {
            let mut chain = SwapChain::new(n, &mut rng);
            for step in 0..600 {
                chain.advance(f64::from(step) / 100.0, 1, &mut rng);
                let mut list = chain.list[..chain.attacks].to_vec();
                list.sort_unstable();
                assert_eq!((chain.energy(), list), defined(&chain.columns), "{:?}", chain.columns);
            }
        }
    }

    #[test]
    fn steps_leave_the_boltzmann_distribution_invariant() {
        /// Permutations to start from.
        const STARTS: usize = 200_000;
        let beta = 0.7;
        let mut rng = Rng::with_seed(8);
        // Uniformly random starts with the weights of the distribution, before and after the steps.
        let (mut before, mut after) = (vec![0.0; 32], vec![0.0; 32]);
        let mut first_row = [0.0; 6];
        for _ in 0..STARTS {
            let mut chain = SwapChain::new(6, &mut rng);
            let weight = (-beta * chain.energy() as f64).exp();
            before[chain.energy() as usize] += weight;
            first_row[usize::from(chain.columns[0])] += weight;
            chain.advance(beta, 3, &mut rng);
            after[chain.energy() as usize] += weight;
            first_row[usize::from(chain.columns[0])] -= weight;
        }
        let all: f64 = before.iter().sum();
        for (before, after) in before.iter().zip(&after) {
            // A share has a standard error of 0.002 at most.
            assert!((before - after).abs() < 0.006 * all, "{before} {after} of {all}");
        }
        assert!(first_row.iter().all(|difference| difference.abs() < 0.006 * all));
    }

    #[test]
    fn boltzmann_factors_are_exponentials_inside_and_outside_of_the_table() {
        let factors = BoltzmannFactors::new(1.3);
        for energy in -20..=20 {
            let ratio = factors.of(energy) / (-1.3 * f64::from(energy)).exp();
            assert!((ratio - 1.0).abs() < 1e-12, "{energy}");
        }
    }
}
