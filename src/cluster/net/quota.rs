//! Limits on the number of slots that each key may hold, and all keys together.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::oneshot;

/// The policy for a newcomer when the quota is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// The newcomer is refused.
    Refuse,
    /// A key at its own limit is refused. If the quota is full, the key with the most slots loses
    /// its oldest, provided that it holds more than the key of the newcomer would.
    DisplaceLargest,
    /// A newcomer is always admitted. A key at its own limit loses its own oldest slot. If the
    /// quota is full, the key with the most slots loses its oldest; among equals the oldest slot of
    /// all is displaced. So keys that hold more cannot keep another out.
    DisplaceOldest,
}

/// The slots that keys hold, with a limit per key and in total.
#[derive(Debug)]
pub(crate) struct KeyedQuota<K: Clone + Eq + Hash> {
    total: usize,
    per_key: usize,
    overflow: Overflow,
    state: Mutex<State<K>>,
}

#[derive(Debug)]
struct State<K> {
    next_id: u64,
    /// The number of slots held by all keys together.
    taken: usize,
    /// The slots by key and age. A key without slots has no entry.
    held: HashMap<K, BTreeMap<u64, oneshot::Sender<()>>>,
}

/// A slot that a key holds until it is dropped or displaced.
#[derive(Debug)]
pub(crate) struct QuotaGuard<K: Clone + Eq + Hash> {
    quota: Arc<KeyedQuota<K>>,
    key: K,
    id: u64,
    /// `None` once the displacement was reported.
    displaced: Option<oneshot::Receiver<()>>,
}

impl<K: Clone + Eq + Hash> KeyedQuota<K> {
    /// Creates a quota of `total` slots, with at most `per_key` for one key.
    pub(crate) fn new(total: usize, per_key: usize, overflow: Overflow) -> Arc<Self> {
        let state = Mutex::new(State { next_id: 0, taken: 0, held: HashMap::new() });
        Arc::new(Self { total, per_key, overflow, state })
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acquires a slot for `key`. Returns `None` if the quota refuses it.
    pub(crate) fn acquire(self: &Arc<Self>, key: K) -> Option<QuotaGuard<K>> {
        let mut state = self.state();
        let own = state.held.get(&key).map_or(0, BTreeMap::len);
        let victim = if own >= self.per_key {
            let may_displace = self.overflow == Overflow::DisplaceOldest && own > 0;
            Some(may_displace.then(|| key.clone())?)
        } else if state.taken >= self.total {
            Some(state.victim(own, self.overflow)?)
        } else {
            None
        };
        if let Some(victim) = victim {
            state.displace(&victim);
        }
        let (sender, displaced) = oneshot::channel();
        let id = state.next_id;
        state.next_id += 1;
        state.taken += 1;
        state.held.entry(key.clone()).or_default().insert(id, sender);
        Some(QuotaGuard { quota: Arc::clone(self), key, id, displaced: Some(displaced) })
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    /// Returns the key that loses its oldest slot to a newcomer whose key holds `own`, or `None` to
    /// refuse the newcomer.
    fn victim(&self, own: usize, overflow: Overflow) -> Option<K> {
        let oldest = |held: &BTreeMap<u64, _>| held.keys().next().copied();
        let largest =
            self.held.iter().max_by_key(|(_, held)| (held.len(), std::cmp::Reverse(oldest(held))));
        let larger = largest.filter(|(_, held)| held.len() > own + 1);
        let victim = match overflow {
            Overflow::Refuse => None,
            Overflow::DisplaceLargest => larger,
            Overflow::DisplaceOldest => {
                larger.or_else(|| self.held.iter().min_by_key(|(_, held)| oldest(held)))
            }
        };
        victim.map(|(key, _)| key.clone())
    }

    /// Takes the oldest slot from a key and notifies its guard.
    fn displace(&mut self, key: &K) {
        if let Some((_, guard)) = self.held.get_mut(key).and_then(BTreeMap::pop_first) {
            self.taken -= 1;
            // A guard that is being dropped has no receiver any more.
            let _ = guard.send(());
        }
        self.remove_if_empty(key);
    }

    fn remove_if_empty(&mut self, key: &K) {
        if self.held.get(key).is_some_and(BTreeMap::is_empty) {
            self.held.remove(key);
        }
    }
}

impl<K: Clone + Eq + Hash> QuotaGuard<K> {
    /// Becomes ready once a newcomer has displaced the slot.
    pub(crate) fn poll_displaced(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(displaced) = &mut self.displaced else { return Poll::Ready(()) };
        let polled = Pin::new(displaced).poll(cx).map(drop);
        if polled.is_ready() {
            self.displaced = None;
        }
        polled
    }

    /// Waits until a newcomer has displaced the slot.
    pub(crate) async fn displaced(&mut self) {
        std::future::poll_fn(|cx| self.poll_displaced(cx)).await;
    }
}

impl<K: Clone + Eq + Hash> Drop for QuotaGuard<K> {
    fn drop(&mut self) {
        let mut state = self.quota.state();
        if state.held.get_mut(&self.key).and_then(|held| held.remove(&self.id)).is_some() {
            state.taken -= 1;
            state.remove_if_empty(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl<K: Clone + Eq + Hash> QuotaGuard<K> {
        fn is_displaced(&mut self) -> bool {
            self.displaced.as_mut().is_none_or(|displaced| displaced.try_recv().is_ok())
        }
    }

    #[test]
    fn no_key_exceeds_its_limit_and_returned_slots_are_free() {
        let quota = KeyedQuota::new(4, 2, Overflow::Refuse);
        let mut held: Vec<_> = [1, 1, 2].map(|key| quota.acquire(key).expect("a free slot")).into();
        assert!(quota.acquire(1).is_none(), "a third for the same");
        held.remove(0);
        held.push(quota.acquire(1).expect("one was given back"));
        held.push(quota.acquire(2).expect("a free slot"));
        assert!(quota.acquire(3).is_none(), "all is taken");
        assert!(held.iter_mut().all(|guard| !guard.is_displaced()), "no slot is displaced");
        drop(held);
        let state = quota.state();
        assert_eq!((state.taken, state.held.len()), (0, 0));
    }

    #[test]
    fn the_largest_key_loses_slots_to_smaller_ones() {
        let quota = KeyedQuota::new(5, 4, Overflow::DisplaceLargest);
        let mut many: Vec<_> =
            (0..4).map(|_| quota.acquire("many").expect("a free slot")).collect();
        assert!(quota.acquire("many").is_none(), "its own limit");
        let mut one = quota.acquire("one").expect("a free slot");
        // The quota is full. Newcomers take the oldest slot of the key with the most, until shares
        // are equal.
        let mut two = quota.acquire("two").expect("many holds four");
        let mut three = quota.acquire("three").expect("many holds three");
        assert_eq!(
            many.iter_mut().map(QuotaGuard::is_displaced).collect::<Vec<_>>(),
            [true, true, false, false]
        );
        assert!(quota.acquire("one").is_none(), "one would hold as many as many");
        let mut four = quota.acquire("four").expect("many holds two");
        assert!(quota.acquire("five").is_none(), "each holds one");
        assert!(
            [&mut one, &mut two, &mut three, &mut four]
                .into_iter()
                .all(|guard| !guard.is_displaced())
        );
        drop(many);
        assert_eq!(quota.state().taken, 4, "what was displaced is not given back twice");
    }

    #[test]
    fn among_equals_the_oldest_is_displaced_and_a_newcomer_is_always_admitted() {
        let quota = KeyedQuota::new(3, 2, Overflow::DisplaceOldest);
        let mut held: Vec<_> = [1, 2, 3].map(|key| quota.acquire(key).expect("a free slot")).into();
        for key in 4..100 {
            held.push(quota.acquire(key).expect("a newcomer"));
            let lost: Vec<bool> = held.iter_mut().map(QuotaGuard::is_displaced).collect();
            assert_eq!(lost, [true, false, false, false], "{key}");
            held.remove(0);
        }
        // A key at its own limit loses its own oldest slot.
        let mut again = quota.acquire(99).expect("a free slot");
        assert!(held.iter_mut().any(QuotaGuard::is_displaced));
        let mut third = quota.acquire(99).expect("its own oldest goes");
        assert!(!again.is_displaced() && !third.is_displaced());
        assert_eq!(quota.state().held[&99].len(), 2);
    }

    #[tokio::test]
    async fn a_displaced_guard_is_notified() {
        let quota = KeyedQuota::new(1, 1, Overflow::DisplaceOldest);
        let mut first = quota.acquire(()).expect("a free slot");
        let notified = tokio::spawn(async move { first.displaced().await });
        tokio::task::yield_now().await;
        let _second = quota.acquire(()).expect("a newcomer");
        notified.await.expect("notified");
    }
}
