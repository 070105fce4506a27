//! What is counted while a process works, and the events that tools are told of.
//!
//! The tables ([`COUNTERS`], [`EVENTS`]) come from `spec/counters.toml`. [`Counters`] is a view of the memory in which one process
//! counts: it lies in the memory of the job, so that the launcher and other tools read it from outside, also after the process
//! has died. [`Observer`] holds the events of a process until they can be told. Nothing here knows messages or MPI.

#![forbid(unsafe_code)]

mod memory;
mod observer;
#[rustfmt::skip]
mod table;

pub use memory::{BYTES, Counters, Mark, POSTED_MARK, UNEXPECTED_MARK, watch};
pub use observer::{CAPACITY, Observer, Occurrence, Told, be_silent};
pub use table::*;

/// A word of a stripe: counted by threads of the program on the path of a short message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe(pub usize);

/// A word that whoever holds the lock of the process's network interface counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locked(pub usize);

/// A word that threads of the program count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program(pub usize);

/// A word that any thread counts, where a locked instruction costs nothing beside the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Any(pub usize);

/// Where a counter is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    Stripe(Stripe),
    Locked(Locked),
    Program(Program),
    Any(Any),
    /// Nowhere: it is asked for.
    Asked,
}

/// What a number means (MPI 5.0, section 15.3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// How often something happened.
    Counter,
    /// A sum.
    Aggregate,
    /// A time; kept in nanoseconds.
    Timer,
    /// The highest level so far.
    Highwatermark,
    /// How much there is now.
    Level,
}

/// What a counter is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    Process,
    Communicator,
}

/// For whom something is interesting (MPI 5.0, section 15.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbosity {
    UserBasic,
    UserDetail,
    TunerBasic,
    TunerDetail,
}

/// Something that is counted.
#[derive(Debug)]
pub struct Counter {
    pub name: &'static str,
    pub class: Class,
    /// Its position in [`CATEGORIES`].
    pub category: usize,
    pub home: Home,
    pub object: Object,
    pub verbosity: Verbosity,
    pub what: &'static str,
}

/// A collective operation with one algorithm, and the row of its counter.
#[derive(Debug)]
pub struct CollectiveCounter {
    pub operation: &'static str,
    /// Whether it is for intercommunicators.
    pub inter: bool,
    pub algorithm: &'static str,
    pub row: usize,
}

/// A group of counters and events.
#[derive(Debug)]
pub struct Category {
    pub name: &'static str,
    pub what: &'static str,
}

/// Who tells events.
#[derive(Debug)]
pub struct Source {
    pub name: &'static str,
    pub what: &'static str,
}

/// The type of an element of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    Int,
    Unsigned,
    Uint64,
}

impl Element {
    /// Its size in bytes, to which it is also aligned.
    pub fn bytes(self) -> usize {
        match self {
            Element::Int | Element::Unsigned => 4,
            Element::Uint64 => 8,
        }
    }
}

/// Something that happens.
#[derive(Debug)]
pub struct Event {
    pub name: &'static str,
    /// Its position in [`SOURCES`].
    pub source: usize,
    /// Its position in [`CATEGORIES`].
    pub category: usize,
    pub verbosity: Verbosity,
    pub what: &'static str,
    pub elements: &'static [(&'static str, Element)],
}

impl Event {
    /// Where the elements stand in a copy of all of them, and how long that is.
    pub fn layout(&self) -> (Vec<usize>, usize) {
        let mut at = 0;
        let place = |(_, element): &(&str, Element)| {
            let place = at_next(at, element.bytes());
            at = place + element.bytes();
            place
        };
        let places: Vec<usize> = self.elements.iter().map(place).collect();
        (places, at)
    }
}

fn at_next(at: usize, alignment: usize) -> usize {
    at.next_multiple_of(alignment)
}

/// The position of an event in [`EVENTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventName(pub u32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_home_of_its_own() {
        let mut homes: Vec<String> = Vec::new();
        for counter in COUNTERS {
            let home = match counter.home {
                Home::Stripe(Stripe(at)) => format!("stripe {at}"),
                Home::Locked(Locked(at)) | Home::Program(Program(at)) | Home::Any(Any(at)) => {
                    format!("word {at}")
                }
                Home::Asked => continue,
            };
            assert!(!homes.contains(&home), "{} shares {home}", counter.name);
            homes.push(home);
        }
        assert_eq!(homes.len(), WORDS + STRIPE_WORDS);
    }

    #[test]
    fn the_constants_name_their_rows() {
        let row = |name: &str| COUNTERS.iter().find(|counter| counter.name == name).unwrap();
        assert_eq!(row("received_short_bytes").home, Home::Locked(RECEIVED_SHORT_BYTES));
        assert_eq!(row("sleeps").home, Home::Any(SLEEPS));
        assert_eq!(row("sent_short_messages").home, Home::Stripe(SENT_SHORT_MESSAGES));
        assert_eq!(COUNTERS[UNEXPECTED_NOW].name, "unexpected_now");
        assert_eq!(EVENTS[WOKE_UP.0 as usize].name, "woke_up");
        for collective in COLLECTIVES {
            let infix = if collective.inter { "_inter_" } else { "_" };
            let name = format!("{}{infix}{}", collective.operation, collective.algorithm);
            assert_eq!(COUNTERS[collective.row].name, name);
            assert!(matches!(COUNTERS[collective.row].home, Home::Program(_)));
        }
    }

    #[test]
    fn the_elements_of_an_event_are_aligned() {
        let event = &EVENTS[UNEXPECTED_ARRIVED.0 as usize];
        assert_eq!(event.layout(), (vec![0, 4, 8, 16], 24));
    }
}
