//! A few places for each, and for all together.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places that are taken and given back.
#[derive(Debug)]
pub(super) struct Places<K: Clone + Eq + Hash> {
    most: usize,
    most_each: usize,
    taken: Mutex<Taken<K>>,
}

#[derive(Debug)]
struct Taken<K> {
    all: usize,
    by: HashMap<K, usize>,
}

/// One that is taken, until it is dropped.
#[derive(Debug)]
pub(super) struct Place<K: Clone + Eq + Hash> {
    places: Arc<Places<K>>,
    who: Option<K>,
}

impl<K: Clone + Eq + Hash> Places<K> {
    /// So many in all, and so many for each.
    pub(super) fn new(most: usize, most_each: usize) -> Arc<Self> {
        let taken = Taken { all: 0, by: HashMap::new() };
        Arc::new(Self { most, most_each, taken: Mutex::new(taken) })
    }

    fn taken(&self) -> MutexGuard<'_, Taken<K>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more for somebody, or for one who is held to no share; none if there is none left.
    pub(super) fn take(self: &Arc<Self>, who: Option<K>) -> Option<Place<K>> {
        let mut taken = self.taken();
        let own = who.as_ref().map_or(0, |who| taken.by.get(who).copied().unwrap_or(0));
        if taken.all >= self.most || own >= self.most_each {
            return None;
        }
        taken.all += 1;
        if let Some(who) = &who {
            taken.by.insert(who.clone(), own + 1);
        }
        Some(Place { places: Arc::clone(self), who })
    }
}

impl<K: Clone + Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.all -= 1;
        if let Some(who) = &self.who
            && let Some(own) = taken.by.get_mut(who)
        {
            *own -= 1;
            // Whoever has gone is forgotten.
            if *own == 0 {
                taken.by.remove(who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_more_than_a_share_and_what_is_given_back_is_free() {
        let places = Places::new(5, 2);
        let mut held: Vec<_> = [1, 1, 2].map(|who| places.take(Some(who)).expect("a place")).into();
        assert!(places.take(Some(1)).is_none(), "a third for the same");
        held.remove(0);
        held.push(places.take(Some(1)).expect("one was given back"));
        // Who is held to no share takes the rest, and then there is none for anybody.
        held.extend([None, None].map(|who| places.take(who).expect("a place")));
        assert!(places.take(None).is_none() && places.take(Some(3)).is_none());
        drop(held);
        let taken = places.taken();
        assert_eq!((taken.all, taken.by.len()), (0, 0));
    }
}
