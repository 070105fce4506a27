//! Events on their way to tools.
//!
//! Something may happen where nobody can be told: with a lock held, or in a thread of the library's own. So whoever sees it puts it
//! into a queue, with the time, and a thread of the program tells what waits there when it comes to a point where nothing is
//! locked. What finds no room is counted, and the count stands in the queue where the events would.

use crate::table::EVENTS;
use crate::{Counters, EventName, watch};
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// How many events wait at most.
pub const CAPACITY: usize = 4096;
/// Elements of an event at most.
const ELEMENTS: usize = 6;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    pub event: EventName,
    /// Nanoseconds since the observer was made.
    pub time_ns: u64,
    /// As the table says; numbers of 32 bits stand in the low half.
    pub elements: [u64; ELEMENTS],
}

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Happened(Occurrence),
    /// So many events of this kind found no room.
    Dropped(EventName, u64),
}

/// Who is told.
type Listener = Box<dyn Fn(&Told) + Send + Sync>;

/// The events of a process.
pub struct Observer {
    began: Instant,
    /// The events that somebody wants to be told of, as bits.
    wanted: AtomicU32,
    pending: AtomicBool,
    telling: AtomicBool,
    queue: Mutex<VecDeque<Told>>,
    listener: OnceLock<Listener>,
    /// Where others see that this process watches.
    counters: Mutex<Option<Counters>>,
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Observer").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

impl Default for Observer {
    fn default() -> Observer {
        Observer {
            began: Instant::now(),
            wanted: AtomicU32::new(0),
            pending: AtomicBool::new(false),
            telling: AtomicBool::new(false),
            queue: Mutex::default(),
            listener: OnceLock::new(),
            counters: Mutex::default(),
        }
    }
}

thread_local! {
    static SILENT: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread is the library's own: it never tells events.
pub fn be_silent() {
    SILENT.set(true);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observer {
    /// Who is told. Once; a second one is ignored.
    pub fn listen(&self, listener: Listener) {
        let _ = self.listener.set(listener);
    }

    /// The process counts here from now on.
    pub fn attach(&self, counters: Counters) {
        let mut place = lock(&self.counters);
        if self.wanted.load(Ordering::Relaxed) != 0 {
            counters.begin_watch(watch::EVENTS);
        }
        *place = Some(counters);
    }

    /// Sets which events are wanted, as bits.
    pub fn want(&self, events: u32) {
        let counters = lock(&self.counters);
        self.wanted.store(events, Ordering::Relaxed);
        if let Some(counters) = &*counters {
            if events != 0 { counters.begin_watch(watch::EVENTS) } else { counters.end_watch(watch::EVENTS) }
        }
    }

    /// Whether an event is wanted.
    #[inline]
    pub fn wants(&self, event: EventName) -> bool {
        self.wanted.load(Ordering::Relaxed) & 1 << event.0 != 0
    }

    /// Nanoseconds since this observer was made.
    pub fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Something has happened. It is told later, see [`Observer::tell`].
    pub fn raise(&self, event: EventName, elements: &[u64]) {
        if !self.wants(event) {
            return;
        }
        let mut occurrence = Occurrence { event, time_ns: 0, elements: [0; ELEMENTS] };
        debug_assert_eq!(elements.len(), EVENTS[event.0 as usize].elements.len());
        occurrence.elements[..elements.len()].copy_from_slice(elements);
        let mut queue = lock(&self.queue);
        if queue.len() >= CAPACITY {
            let trailing = queue.iter_mut().rev().map_while(|told| match told {
                Told::Dropped(event, count) => Some((event, count)),
                Told::Happened(_) => None,
            });
            match { trailing }.find(|(dropped, _)| **dropped == event) {
                Some((_, count)) => *count += 1,
                None => queue.push_back(Told::Dropped(event, 1)),
            }
        } else {
            // Taken with the lock held, so that the queue is in the order of time.
            occurrence.time_ns = self.now_ns();
            queue.push_back(Told::Happened(occurrence));
        }
        self.pending.store(true, Ordering::Release);
    }

    /// Tells what waits, unless somebody does so already. For a thread of the program that holds no lock.
    #[inline]
    pub fn tell(&self) {
        if self.pending.load(Ordering::Relaxed) {
            self.tell_all();
        }
    }

    /// Whether some thread tells just now.
    pub fn is_telling(&self) -> bool {
        self.telling.load(Ordering::Acquire)
    }

    #[cold]
    fn tell_all(&self) {
        let Some(listener) = self.listener.get() else { return };
        if SILENT.get() || self.telling.swap(true, Ordering::Acquire) {
            return;
        }
        // As many as wait now: what the listener causes comes next time.
        let mut left = lock(&self.queue).len();
        while left > 0 {
            let Some(told) = ({
                let mut queue = lock(&self.queue);
                let told = queue.pop_front();
                self.pending.store(!queue.is_empty(), Ordering::Relaxed);
                told
            }) else {
                break;
            };
            listener(&told);
            left -= 1;
        }
        self.telling.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{FELL_ASLEEP, WOKE_UP};
    use std::sync::Arc;

    fn heard() -> (Arc<Observer>, Arc<Mutex<Vec<Told>>>) {
        let (observer, heard) = (Arc::new(Observer::default()), Arc::new(Mutex::new(Vec::new())));
        let ear = heard.clone();
        observer.listen(Box::new(move |told| lock(&ear).push(*told)));
        (observer, heard)
    }

    #[test]
    fn only_what_is_wanted_is_told_and_in_order() {
        let (observer, heard) = heard();
        observer.raise(FELL_ASLEEP, &[1]);
        observer.want(1 << WOKE_UP.0);
        observer.raise(FELL_ASLEEP, &[2]);
        observer.raise(WOKE_UP, &[3]);
        observer.raise(WOKE_UP, &[4]);
        assert!(lock(&heard).is_empty());
        observer.tell();
        observer.tell();
        let heard = lock(&heard);
        let times: Vec<(u64, u64)> = heard
            .iter()
            .map(|told| match told {
                Told::Happened(occurrence) => (occurrence.elements[0], occurrence.time_ns),
                Told::Dropped(..) => panic!("nothing was dropped"),
            })
            .collect();
        assert_eq!(times.iter().map(|(element, _)| *element).collect::<Vec<_>>(), [3, 4]);
        assert!(times[0].1 <= times[1].1);
    }

    #[test]
    fn what_finds_no_room_is_counted_in_its_place() {
        let (observer, heard) = heard();
        observer.want(u32::MAX);
        for number in 0..CAPACITY as u64 {
            observer.raise(WOKE_UP, &[number]);
        }
        for _ in 0..3 {
            observer.raise(WOKE_UP, &[0]);
            observer.raise(FELL_ASLEEP, &[0]);
        }
        observer.tell();
        observer.raise(WOKE_UP, &[7]);
        observer.tell();
        let heard = lock(&heard);
        assert_eq!(heard.len(), CAPACITY + 3);
        assert_eq!(heard[CAPACITY..CAPACITY + 2], [Told::Dropped(WOKE_UP, 3), Told::Dropped(FELL_ASLEEP, 3)]);
        assert!(matches!(heard[CAPACITY + 2], Told::Happened(_)));
    }

    #[test]
    fn a_thread_of_the_librarys_own_tells_nothing() {
        let (observer, heard) = heard();
        observer.want(u32::MAX);
        observer.raise(WOKE_UP, &[1]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                be_silent();
                observer.tell();
            });
        });
        assert!(lock(&heard).is_empty());
        observer.tell();
        assert_eq!(lock(&heard).len(), 1);
    }
}
