//! The number of ways to put n pieces on a board, attacking or not.

use num_bigint::BigUint;

/// Returns the binomial coefficient C(n², n): the number of ways to choose n of the n² squares
/// (OEIS A014062). It has 10 digits for n = 8 and 543,427 for n = 100,000.
pub fn placements(n: u32) -> BigUint {
    let n = u64::from(n);
    // (n² - n + 1) … n² over 1 … n; both products are balanced trees, so that factors have similar
    // size.
    product(n * n - n, n * n) / product(0, n)
}

/// Returns the product of the integers above `from`, up to `to`.
fn product(from: u64, to: u64) -> BigUint {
    match to - from {
        0 => BigUint::from(1u32),
        1 => BigUint::from(to),
        factors => {
            let middle = from + factors / 2;
            product(from, middle) * product(middle, to)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_values_equal_the_published_ones() {
        let values: Vec<String> = (0..=8).map(|n| placements(n).to_string()).collect();
        assert_eq!(
            values,
            ["1", "1", "6", "84", "1820", "53130", "1947792", "85900584", "4426165368"]
        );
    }

    #[test]
    fn values_equal_those_of_pascals_triangle() {
        // Pascal's triangle row by row, by addition only, up to row n² = 900.
        let mut row = vec![BigUint::from(1u32)];
        for size in 1..=900u32 {
            let mut next = vec![BigUint::from(1u32)];
            next.extend(row.windows(2).map(|pair| &pair[0] + &pair[1]));
            next.push(BigUint::from(1u32));
            row = next;
            let n = size.isqrt();
            if n * n == size {
                assert_eq!(placements(n), row[n as usize], "n = {n}");
            }
        }
    }
}
