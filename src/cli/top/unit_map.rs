//! The map of a job's units. Each character shows several cells of the coordinator's map.

use ratatui::style::Color;

use crate::cluster::protocol::v1;
use crate::report::job_name;

/// The states of the units of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UnitMap {
    /// The name of the job.
    pub(super) job: String,
    /// The version, which changes with the map.
    pub(super) version: u64,
    /// The share of units in each cell, from 0 to 255, that are counted; verified; leased; set
    /// aside.
    done: Vec<u8>,
    verified: Vec<u8>,
    leased: Vec<u8>,
    poisoned: Vec<u8>,
}

/// The state of some units, shown as one character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// All are open.
    Open,
    /// Some are leased, and none is counted.
    Leased,
    /// Some are counted.
    Partial,
    /// All are counted.
    Counted,
    /// All are verified.
    Verified,
    /// Some are set aside.
    Aside,
}

impl Mark {
    /// All marks, in the order in which units reach them.
    pub(super) const ALL: [Self; 6] =
        [Self::Open, Self::Leased, Self::Partial, Self::Counted, Self::Verified, Self::Aside];

    pub(super) const fn symbol(self) -> char {
        match self {
            Self::Open => '·',
            Self::Leased => '░',
            Self::Partial => '▒',
            Self::Counted => '▓',
            Self::Verified => '█',
            Self::Aside => '!',
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Leased => "leased",
            Self::Partial => "partial",
            Self::Counted => "counted",
            Self::Verified => "verified",
            Self::Aside => "set aside",
        }
    }

    pub(super) const fn colour(self) -> Color {
        match self {
            Self::Open => Color::DarkGray,
            Self::Leased => Color::Yellow,
            Self::Partial | Self::Counted => Color::Blue,
            Self::Verified => Color::Green,
            Self::Aside => Color::Red,
        }
    }
}

impl UnitMap {
    /// Creates the map from an answer; `None` if it has not changed or is invalid.
    pub(super) fn new(answer: v1::UnitMapResponse) -> Option<Self> {
        let v1::UnitMapResponse { job, version, done, verified, leased, poisoned, .. } = answer;
        let as_many = |cells: &Vec<u8>| cells.len() == done.len();
        if done.is_empty() || ![&verified, &leased, &poisoned].into_iter().all(as_many) {
            return None;
        }
        Some(Self { job: job_name(&job), version, done, verified, leased, poisoned })
    }

    /// Returns `most` marks, or one for each cell if there are fewer cells.
    pub(super) fn marks(&self, most: usize) -> Vec<Mark> {
        let cells = self.done.len();
        let marks = cells.min(most);
        (0..marks).map(|mark| self.mark(mark * cells / marks, (mark + 1) * cells / marks)).collect()
    }

    /// Returns the mark of the cells from `begin` to `end`, exclusive.
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
            Mark::Partial
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
        let response = v1::UnitMapResponse {
            job: vec![1],
            version: 1,
            done: done.to_vec(),
            verified: verified.to_vec(),
            leased: leased.to_vec(),
            poisoned: poisoned.to_vec(),
            ..Default::default()
        };
        UnitMap::new(response).expect("it is valid")
    }

    #[test]
    fn a_character_shows_the_worst_of_its_cells() {
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
    fn an_invalid_response_is_refused() {
        let response =
            v1::UnitMapResponse { done: vec![1, 2], verified: vec![1], ..Default::default() };
        assert_eq!(UnitMap::new(response), None);
        assert_eq!(UnitMap::new(v1::UnitMapResponse::default()), None);
    }
}
