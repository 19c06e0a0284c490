//! The map of a job's units: many cells of the coordinator's in each character.

use ratatui::style::Color;

use crate::cli::job_report::job_name;
use crate::cluster::protocol::v1;

/// Where a job has its units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UnitMap {
    /// The job's name.
    pub(super) job: String,
    /// Changes with the map.
    pub(super) version: u64,
    /// For each cell how many of its units are counted, of 255; and confirmed; in leases; set aside.
    done: Vec<u8>,
    verified: Vec<u8>,
    leased: Vec<u8>,
    poisoned: Vec<u8>,
}

/// What is shown of some units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Nobody has them.
    Open,
    /// Some are in somebody's hands, none is counted.
    Leased,
    /// Some are counted.
    Begun,
    /// All are counted.
    Counted,
    /// All are confirmed.
    Verified,
    /// Some are set aside.
    Aside,
}

impl Mark {
    /// In the order in which units go through them.
    pub(super) const ALL: [Self; 6] =
        [Self::Open, Self::Leased, Self::Begun, Self::Counted, Self::Verified, Self::Aside];

    pub(super) const fn symbol(self) -> char {
        match self {
            Self::Open => '·',
            Self::Leased => '░',
            Self::Begun => '▒',
            Self::Counted => '▓',
            Self::Verified => '█',
            Self::Aside => '!',
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Leased => "in hand",
            Self::Begun => "begun",
            Self::Counted => "counted",
            Self::Verified => "verified",
            Self::Aside => "set aside",
        }
    }

    pub(super) const fn colour(self) -> Color {
        match self {
            Self::Open => Color::DarkGray,
            Self::Leased => Color::Yellow,
            Self::Begun | Self::Counted => Color::Blue,
            Self::Verified => Color::Green,
            Self::Aside => Color::Red,
        }
    }
}

impl UnitMap {
    /// The map that a coordinator tells; none if it tells that nothing has changed, or what makes no sense.
    pub(super) fn new(told: v1::UnitMapResponse) -> Option<Self> {
        let v1::UnitMapResponse { job, version, done, verified, leased, poisoned, .. } = told;
        let as_many = |cells: &Vec<u8>| cells.len() == done.len();
        if done.is_empty() || ![&verified, &leased, &poisoned].into_iter().all(as_many) {
            return None;
        }
        Some(Self { job: job_name(&job), version, done, verified, leased, poisoned })
    }

    /// As many marks, or one for each cell if there are fewer cells.
    pub(super) fn marks(&self, most: usize) -> Vec<Mark> {
        let cells = self.done.len();
        let marks = cells.min(most);
        (0..marks).map(|mark| self.mark(mark * cells / marks, (mark + 1) * cells / marks)).collect()
    }

    /// Of the cells from `begin` to `end`, the latter not included.
    fn mark(&self, begin: usize, end: usize) -> Mark {
        let any = |cells: &[u8]| cells[begin..end].iter().any(|&share| share > 0);
        let all = |cells: &[u8]| cells[begin..end].iter().all(|&share| share == u8::MAX);
        if any(&self.poisoned) {
            Mark::Aside
        } else if all(&self.verified) {
            Mark::Verified
        } else if all(&self.done) {
            Mark::Counted
        } else if any(&self.done) {
            Mark::Begun
        } else if any(&self.leased) {
            Mark::Leased
        } else {
            Mark::Open
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(done: &[u8], verified: &[u8], leased: &[u8], poisoned: &[u8]) -> UnitMap {
        let told = v1::UnitMapResponse {
            job: vec![1],
            version: 1,
            done: done.to_vec(),
            verified: verified.to_vec(),
            leased: leased.to_vec(),
            poisoned: poisoned.to_vec(),
            ..Default::default()
        };
        UnitMap::new(told).expect("it makes sense")
    }

    #[test]
    fn a_mark_says_the_worst_of_its_cells() {
        let map = map(
            &[255, 255, 255, 7, 0, 0, 0],
            &[255, 255, 9, 0, 0, 0, 0],
            &[0, 0, 0, 0, 3, 0, 0],
            &[0, 0, 0, 0, 0, 0, 1],
        );
        let symbols = |most| map.marks(most).into_iter().map(Mark::symbol).collect::<String>();
        assert_eq!(symbols(100), "██▓▒░·!");
        assert_eq!(symbols(7), "██▓▒░·!");
        assert_eq!(symbols(3), "█▒!");
        assert_eq!(symbols(1), "!");
        assert_eq!(symbols(0), "");
    }

    #[test]
    fn what_makes_no_sense_is_no_map() {
        let told =
            v1::UnitMapResponse { done: vec![1, 2], verified: vec![1], ..Default::default() };
        assert_eq!(UnitMap::new(told), None);
        assert_eq!(UnitMap::new(v1::UnitMapResponse::default()), None);
    }
}
