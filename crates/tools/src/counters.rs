//! `parnass info --counters`: what every process counts, and what tools are told.

use parnass_counters::{CATEGORIES, COLLECTIVES, COUNTERS, Class, EVENTS, Object};
use std::fmt::Write as _;

/// For people.
pub fn text() -> String {
    let mut text = String::from(
        "what every process counts: mpiexec --stats shows it, and MPI_T reads it under these names\n",
    );
    for (place, category) in CATEGORIES.iter().enumerate() {
        let _ = writeln!(text, "\n{}: {}", category.name, category.what);
        for counter in COUNTERS.iter().filter(|counter| counter.category == place) {
            if COLLECTIVES.iter().any(|known| COUNTERS[known.row].name == counter.name) {
                let _ = writeln!(text, "  {}", counter.name);
                continue;
            }
            let class = match counter.class {
                Class::Counter => "counter",
                Class::Aggregate => "sum",
                Class::Timer => "timer",
                Class::Highwatermark => "high-water mark",
                Class::Level => "level",
            };
            let of = if counter.object == Object::Communicator { ", of a communicator" } else { "" };
            let _ = writeln!(text, "  {:<28} {}  ({class}{of})", counter.name, counter.what);
        }
        for event in EVENTS.iter().filter(|event| event.category == place) {
            let _ = writeln!(text, "  {:<28} {}  (event)", event.name, event.what);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_listed_once() {
        let text = text();
        let names = COUNTERS.iter().map(|counter| counter.name).chain(EVENTS.iter().map(|event| event.name));
        for name in names {
            let starts =
                |line: &str| line.strip_prefix("  ").is_some_and(|line| line.split(' ').next() == Some(name));
            assert_eq!(text.lines().filter(|line| starts(line)).count(), 1, "{name}");
        }
    }
}
