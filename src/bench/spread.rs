//! The median and the extremes of measurements.

/// The median and the extremes of some values.
#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
pub struct Spread {
    /// The median; for an even number of values, the mean of the two in the middle.
    pub median: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
}

impl Spread {
    /// Returns the spread of `values`.
    ///
    /// # Panics
    /// `values` is empty.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (upper, last) = (values.len() / 2, values.len() - 1);
        let lower = last / 2;
        let median = if lower == upper {
            values[upper]
        } else {
            f64::midpoint(values[lower], values[upper])
        };
        Self { median, min: values[0], max: values[last] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value_or_the_mean_of_two() {
        let spread = |values: &[f64]| {
            let Spread { median, min, max } = Spread::of(values.iter().copied());
            (median, min, max)
        };
        assert_eq!(spread(&[3.0]), (3.0, 3.0, 3.0));
        assert_eq!(spread(&[3.0, 1.0]), (2.0, 1.0, 3.0));
        assert_eq!(spread(&[9.0, 1.0, 2.0]), (2.0, 1.0, 9.0));
        assert_eq!(spread(&[9.0, 1.0, 2.0, 4.0]), (3.0, 1.0, 9.0));
    }
}
