//! The dense loops of an exchange, also compiled for the wide registers of newer processors. They
//! work element by element, without sums over elements and without fused operations, so that all
//! versions give identical bits.
#![allow(unsafe_code)]

/// The instruction set for these loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// The baseline of the architecture.
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2(Present),
    #[cfg(target_arch = "x86_64")]
    Avx512(Present),
}

/// Proof that this processor supports the instruction set; only [`Width::all`] creates one.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Present(());

impl Width {
    /// Returns all instruction sets that this processor supports, the widest last.
    pub(super) fn all() -> impl DoubleEndedIterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        let wide = [
            is_x86_feature_detected!("avx2").then_some(Self::Avx2(Present(()))),
            is_x86_feature_detected!("avx512f").then_some(Self::Avx512(Present(()))),
        ];
        #[cfg(not(target_arch = "x86_64"))]
        let wide: [Option<Self>; 0] = [];
        std::iter::once(Self::Plain).chain(wide.into_iter().flatten())
    }

    /// Returns the widest instruction set.
    pub(super) fn widest() -> Self {
        Self::all().next_back().unwrap_or(Self::Plain)
    }

    /// `column` −= `factor` × `alpha`.
    pub(super) fn subtract(self, column: &mut [f64], alpha: &[f64], factor: f64) {
        match self {
            Self::Plain => subtract(column, alpha, factor),
            // SAFETY: the processor supports these instructions, as `Present` proves.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => unsafe { avx2::subtract(column, alpha, factor) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => unsafe { avx512::subtract(column, alpha, factor) },
        }
    }

    /// Like [`subtract`](Self::subtract), but also updates each of `norms` by the change of its
    /// entry's square.
    pub(super) fn subtract_with_norms(
        self,
        column: &mut [f64],
        norms: &mut [f64],
        alpha: &[f64],
        factor: f64,
    ) {
        match self {
            Self::Plain => subtract_with_norms(column, norms, alpha, factor),
            // SAFETY: the processor supports these instructions, as `Present` proves.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => unsafe { avx2::subtract_with_norms(column, norms, alpha, factor) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => unsafe { avx512::subtract_with_norms(column, norms, alpha, factor) },
        }
    }
}

#[inline(always)]
fn subtract(column: &mut [f64], alpha: &[f64], factor: f64) {
    column.iter_mut().zip(alpha).for_each(|(entry, &a)| *entry -= a * factor);
}

#[inline(always)]
fn subtract_with_norms(column: &mut [f64], norms: &mut [f64], alpha: &[f64], factor: f64) {
    let entries = column.iter_mut().zip(norms).zip(alpha);
    entries.for_each(|((entry, norm), &a)| subtract_one(entry, norm, a * factor));
}

/// Subtracts from an entry, and updates the norm of its row.
#[inline(always)]
pub(super) fn subtract_one(entry: &mut f64, norm: &mut f64, what: f64) {
    let new = *entry - what;
    *norm -= what * (*entry + new);
    *entry = new;
}

/// Compiles the loops with these instructions enabled.
macro_rules! compiled_for {
    ($module:ident, $features:literal) => {
        #[cfg(target_arch = "x86_64")]
        mod $module {
            /// # Safety
            /// The processor must support the instructions.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn subtract(column: &mut [f64], alpha: &[f64], factor: f64) {
                super::subtract(column, alpha, factor);
            }

            /// # Safety
            /// The processor must support the instructions.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn subtract_with_norms(
                column: &mut [f64],
                norms: &mut [f64],
                alpha: &[f64],
                factor: f64,
            ) {
                super::subtract_with_norms(column, norms, alpha, factor);
            }
        }
    };
}

compiled_for!(avx2, "avx2");
compiled_for!(avx512, "avx512f");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_vector_widths_give_bitwise_equal_results() {
        let mut random = fastrand::Rng::with_seed(7);
        for len in 0..70 {
            let mut vector = || (0..len).map(|_| random.f64() - 0.5).collect::<Vec<f64>>();
            let (column, norms, alpha) = (vector(), vector(), vector());
            let bits =
                |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<u64>>();
            let results = Width::all().map(|width| {
                let (mut one, mut two, mut norms) = (column.clone(), column.clone(), norms.clone());
                width.subtract(&mut one, &alpha, 0.3);
                width.subtract_with_norms(&mut two, &mut norms, &alpha, 0.3);
                assert_eq!(bits(&one), bits(&two));
                (bits(&one), bits(&norms))
            });
            let results: Vec<_> = results.collect();
            assert!(results.iter().all(|result| *result == results[0]), "{len}");
        }
    }
}
