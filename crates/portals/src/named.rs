//! Things that wait for an answer from another node or from the network.

use std::sync::{Mutex, PoisonError};

/// Things under names that are given again once they are free. Keeping, finding and forgetting take the same time however many
/// there are.
#[derive(Debug)]
pub struct Named<T>(Mutex<Table<T>>);

#[derive(Debug)]
struct Table<T> {
    things: Vec<Option<T>>,
    /// The names that are free, each below the length of the table.
    free: Vec<usize>,
}

impl<T> Default for Named<T> {
    fn default() -> Named<T> {
        Named(Mutex::new(Table { things: Vec::new(), free: Vec::new() }))
    }
}

impl<T> Named<T> {
    fn with<R>(&self, work: impl FnOnce(&mut Table<T>) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps something, and names it.
    pub fn keep(&self, thing: T) -> u64 {
        self.with(|table| match table.free.pop() {
            Some(name) => {
                table.things[name] = Some(thing);
                name as u64
            }
            None => {
                table.things.push(Some(thing));
                table.things.len() as u64 - 1
            }
        })
    }

    /// What `look` says of a thing; `None`: nothing has that name.
    pub fn find<R>(&self, name: u64, look: impl FnOnce(&mut T) -> R) -> Option<R> {
        let index = usize::try_from(name).ok()?;
        self.with(|table| table.things.get_mut(index)?.as_mut().map(look))
    }

    /// Gives back all things that `choose` picks, and their names free.
    pub fn forget_all(&self, choose: impl Fn(&T) -> bool) -> Vec<T> {
        let chosen: Vec<u64> = self.with(|table| {
            let named = (0..).zip(&table.things);
            named.filter(|(_, thing)| thing.as_ref().is_some_and(&choose)).map(|(name, _)| name).collect()
        });
        chosen.into_iter().filter_map(|name| self.forget(name)).collect()
    }

    /// Gives a thing back, and its name free.
    pub fn forget(&self, name: u64) -> Option<T> {
        let index = usize::try_from(name).ok()?;
        self.with(|table| {
            let thing = table.things.get_mut(index)?.take()?;
            table.free.push(index);
            if table.free.len() == table.things.len() {
                table.things.clear();
                table.free.clear();
            }
            Some(thing)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn does_what_a_map_does(steps in proptest::collection::vec((any::<bool>(), 0u64..40), 0..300)) {
            let (named, mut map) = (Named::default(), BTreeMap::new());
            let mut most = 0;
            for (number, (keeps, name)) in (0u32..).zip(steps) {
                if keeps {
                    prop_assert_eq!(map.insert(named.keep(number), number), None);
                    most = most.max(map.len());
                } else {
                    prop_assert_eq!(named.find(name, |thing| *thing), map.get(&name).copied());
                    prop_assert_eq!(named.forget(name), map.remove(&name));
                }
                // No more names than things that there were at once.
                prop_assert!(map.keys().all(|name| *name < most as u64));
            }
            prop_assert_eq!(named.find(u64::MAX, |thing| *thing), None);
        }
    }
}
