//! The values in force, and where each came from.

use crate::{PREFIX, TABLE, Value, find, is_near};
use std::fmt;
use std::path::PathBuf;

/// Where a value came from. A later one overrides an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    /// The file that `parnass tune` wrote.
    Tuned(PathBuf),
    /// A line of the configuration file.
    File(PathBuf, usize),
    /// Its variable in the environment.
    Environment,
    /// `mpiexec --tunable`.
    Option,
    /// The launcher has decided; it knows the reason.
    Launcher,
    /// A tool in the process has written it.
    Tool,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => formatter.write_str("default"),
            Origin::Tuned(path) => write!(formatter, "{} (parnass tune)", path.display()),
            Origin::File(path, line) => write!(formatter, "{}, line {line}", path.display()),
            Origin::Environment => formatter.write_str("environment"),
            Origin::Option => formatter.write_str("mpiexec --tunable"),
            Origin::Launcher => formatter.write_str("mpiexec"),
            Origin::Tool => formatter.write_str("MPI_T_cvar_write"),
        }
    }
}

/// A value for every row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    entries: Vec<(Value, Origin)>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { entries: TABLE.iter().map(|row| (row.default.clone(), Origin::Default)).collect() }
    }
}

impl Settings {
    /// The value of a row, by its position, and where it came from.
    pub fn of(&self, row: usize) -> (&Value, &Origin) {
        let (value, origin) = &self.entries[row];
        (value, origin)
    }

    /// The value of a row that is a number.
    ///
    /// # Panics
    /// If it is none.
    pub fn number(&self, row: usize) -> u64 {
        match self.of(row).0 {
            Value::Number(number) => *number,
            other => panic!("{} is no number but {other:?}", TABLE[row].name),
        }
    }

    /// Whether a row that is a switch is on.
    ///
    /// # Panics
    /// If it is none.
    pub fn switch(&self, row: usize) -> bool {
        match self.of(row).0 {
            Value::Switch(on) => *on,
            other => panic!("{} is no switch but {other:?}", TABLE[row].name),
        }
    }

    /// The value of a row that is a text.
    ///
    /// # Panics
    /// If it is none.
    pub fn text(&self, row: usize) -> &str {
        match self.of(row).0 {
            Value::Text(text) => text,
            other => panic!("{} is no text but {other:?}", TABLE[row].name),
        }
    }

    /// Gives the row `name` the value that `text` says.
    ///
    /// # Errors
    /// There is no such row or value; says what there is.
    pub fn set(&mut self, name: &str, text: &str, origin: Origin) -> Result<(), String> {
        let row = find(name)?;
        self.entries[row] = (TABLE[row].read(text)?, origin);
        Ok(())
    }

    /// Gives a row, by its position, a value that it may have.
    pub fn replace(&mut self, row: usize, value: Value, origin: Origin) {
        self.entries[row] = (value, origin);
    }

    /// Reads variables of the environment; those of others are passed over. An empty value counts as none.
    ///
    /// # Errors
    /// A value is wrong, or a name that is nearly that of a tunable.
    pub fn read_environment<'a>(
        &mut self,
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), String> {
        for (name, text) in variables {
            match variable(name)? {
                Some(row) if !text.trim().is_empty() => {
                    let value = TABLE[row].read(text).map_err(|error| format!("{name}: {error}"))?;
                    self.entries[row] = (value, Origin::Environment);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Complains of variables that were changed after the launcher had decided: all ranks must have the same values.
    ///
    /// # Errors
    /// Which one, and what to do instead.
    pub fn check_environment<'a>(
        &self,
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), String> {
        let mut own = self.clone();
        own.read_environment(variables)?;
        for ((row, (value, _)), (given, origin)) in TABLE.iter().zip(&self.entries).zip(&own.entries) {
            if *origin == Origin::Environment && value != given {
                return Err(format!(
                    "{0} is '{given}' in this process, but mpiexec has decided '{value}': all ranks have the same values; \
                     set it for mpiexec, or give mpiexec --tunable {1}={given}",
                    row.variable, row.name
                ));
            }
        }
        Ok(())
    }

    /// What differs from the defaults, as NAME=VALUE without blanks in it: for handing over.
    pub fn words(&self) -> Vec<String> {
        let changed = TABLE.iter().zip(&self.entries).filter(|(row, (value, _))| *value != row.default);
        changed.map(|(row, (value, _))| format!("{}={value}", row.name)).collect()
    }

    /// From what [`Settings::words`] gave.
    ///
    /// # Errors
    /// A word is none of those.
    pub fn from_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Settings, String> {
        let mut settings = Settings::default();
        for word in words {
            let (name, value) = word.split_once('=').ok_or_else(|| format!("'{word}' is not NAME=VALUE"))?;
            settings.set(name, value, Origin::Launcher)?;
        }
        Ok(settings)
    }
}

/// The row of a variable; `None` for a variable of somebody else's.
///
/// # Errors
/// It looks like a row's variable that was misspelt.
pub fn variable(name: &str) -> Result<Option<usize>, String> {
    let Some(rest) = name.strip_prefix(PREFIX) else { return Ok(None) };
    if let Some(row) = TABLE.iter().position(|row| row.variable == name) {
        return Ok(Some(row));
    }
    let rest = rest.to_ascii_lowercase();
    match TABLE.iter().find(|row| is_near(row.name, &rest)) {
        Some(row) => Err(format!("{name} is no variable of Parnass; did you mean {}?", row.variable)),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{COLLECTIVE, DIRECT, DIRECT_THRESHOLD};

    #[test]
    fn what_is_handed_over_arrives() {
        let mut settings = Settings::default();
        assert!(settings.words().is_empty());
        settings.set("direct_threshold", "7", Origin::Option).unwrap();
        settings
            .read_environment([
                ("PARNASS_COLLECTIVE", "bcast:chain, barrier:linear"),
                ("PARNASS_DIRECT", "off"),
            ])
            .unwrap();
        let words = settings.words();
        let arrived = Settings::from_words(words.iter().map(String::as_str)).unwrap();
        assert_eq!(arrived.number(DIRECT_THRESHOLD), 7);
        assert_eq!(arrived.text(COLLECTIVE), "bcast:chain,barrier:linear");
        assert!(!arrived.switch(DIRECT));
        assert_eq!(arrived.words(), words);
        assert!(Settings::from_words(["direct_threshold"]).is_err());
    }

    #[test]
    fn the_environment_is_read_and_its_errors_told() {
        let read = |name: &str, value: &str| Settings::default().read_environment([(name, value)]);
        assert_eq!(read("PARNASS_DIRECT_THRESHOLD", ""), Ok(()));
        assert_eq!(read("PARNASS_ROOT", "/opt"), Ok(()));
        assert_eq!(read("DIRECT_THRESHOL", "9"), Ok(()));
        assert!(
            read("PARNASS_DIRECT_THRESHOL", "9")
                .unwrap_err()
                .contains("did you mean PARNASS_DIRECT_THRESHOLD?")
        );
        let error = read("PARNASS_DIRECT_THRESHOLD", "many").unwrap_err();
        assert!(error.starts_with("PARNASS_DIRECT_THRESHOLD: 'many'"), "{error}");
    }

    #[test]
    fn a_value_changed_after_the_decision_is_an_error() {
        let settings = Settings::from_words(["direct_threshold=7"]).unwrap();
        assert_eq!(
            settings.check_environment([("PARNASS_DIRECT_THRESHOLD", "7"), ("PARNASS_DIRECT", "on")]),
            Ok(())
        );
        let error = settings.check_environment([("PARNASS_DIRECT_THRESHOLD", "8")]).unwrap_err();
        assert!(error.contains("mpiexec has decided '7'"), "{error}");
    }
}
