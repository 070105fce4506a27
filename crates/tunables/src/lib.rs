//! Every value that can be chosen without changing the code: one table, and where each value came from.
//!
//! A value is the last one that is given of: the default, the file that `parnass tune` writes, the configuration file, the
//! environment, `mpiexec --tunable NAME=VALUE`. All ranks of a job have the same values: the launcher decides
//! ([`files::decide`]) and hands over what differs from the defaults as words ([`Settings::words`]). Crates that do the
//! work know nothing of this one: they are given plain structs.

#![forbid(unsafe_code)]

#[cfg(feature = "files")]
pub mod files;
mod settings;
#[rustfmt::skip]
mod table;
mod value;

pub use settings::{Origin, Settings};
pub use table::*;
pub use value::{Kind, Value, size};

/// What the names of environment variables begin with.
pub const PREFIX: &str = "PARNASS_";

/// Which processes have the same value of a tunable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All of a job.
    All,
    /// Each may have its own.
    Local,
}

/// Until when a tool may change a tunable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Until MPI is initialised.
    Start,
    /// At any time.
    Running,
}

/// One row of the table.
#[derive(Debug)]
pub struct Tunable {
    /// In files and for `mpiexec --tunable`.
    pub name: &'static str,
    /// Its environment variable.
    pub variable: &'static str,
    pub kind: Kind,
    pub default: Value,
    /// The range of a number.
    pub least: u64,
    pub most: u64,
    /// The crate that reads it.
    pub room: &'static str,
    /// Whether `parnass tune` measures it.
    pub measured: bool,
    /// Which processes have the same value.
    pub scope: Scope,
    /// Until when a tool may change it.
    pub changes: Changes,
    /// What it does, in a sentence or two.
    pub what: &'static str,
}

/// The position of the row with this name.
///
/// # Errors
/// There is none; says which name is the nearest.
pub fn find(name: &str) -> Result<usize, String> {
    TABLE.iter().position(|row| row.name == name).ok_or_else(|| {
        let nearest =
            TABLE.iter().min_by_key(|row| distance(row.name, name)).expect("the table is not empty");
        let advice = if is_near(nearest.name, name) {
            format!("did you mean {}?", nearest.name)
        } else {
            let names: Vec<&str> = TABLE.iter().map(|row| row.name).collect();
            format!("there are {}", names.join(", "))
        };
        format!("there is no tunable '{name}'; {advice} (parnass info --tunables explains each)")
    })
}

/// Whether somebody who wrote `written` may have meant `known`.
fn is_near(known: &str, written: &str) -> bool {
    distance(known, written) <= (known.len() / 4).max(1)
}

/// Number of bytes to insert, delete or replace between two words.
fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, byte) in left.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in right.bytes().enumerate() {
            let replaced = diagonal + usize::from(byte != other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_is_told_the_nearest() {
        assert!(find("direct_treshold").unwrap_err().contains("did you mean direct_threshold?"));
        assert!(find("elephants").unwrap_err().contains("there are direct, spins"));
        assert_eq!(TABLE[find("direct").unwrap()].variable, "PARNASS_DIRECT");
    }

    #[test]
    fn every_default_is_one_of_the_values_allowed() {
        for row in TABLE {
            assert_eq!(row.read(&row.default.to_string()), Ok(row.default.clone()), "{}", row.name);
        }
    }
}
