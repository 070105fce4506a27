//! The values of a run: what the programs print, medians, the file, and the comparison of two runs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use super::libraries::OURS;
use super::yardsticks::{Better, measure};

/// The number of the file's form.
const FORM: u32 = 1;
/// What the floors' values are filed under instead of a library's name.
pub const MACHINE: &str = "machine";
/// A change by less than this factor is not told.
const NOTABLE: f64 = 1.1;

/// A run with all its values.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    /// The number of the file's form.
    pub form: u32,
    /// The command that repeats it.
    pub command: String,
    /// The machine in words.
    pub machine: String,
    /// The day, as 2026-03-14.
    pub date: String,
    /// How often each yardstick ran on each library.
    pub rounds: u32,
    /// The time spent on each value.
    pub milliseconds: u32,
    /// Who took part; ours is first.
    pub libraries: Vec<Participant>,
    /// The values.
    pub rows: Vec<Row>,
    /// What is missing because something failed, and why.
    pub missing: Vec<Missing>,
    /// What a yardstick left out, and why.
    pub notes: Vec<Missing>,
}

/// A library that took part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Participant {
    /// Its name in the rows.
    pub name: String,
    /// Its version.
    pub version: String,
    /// How it was started.
    pub settings: String,
}

/// One value on every library.
#[derive(Debug, Serialize, Deserialize)]
pub struct Row {
    /// As the yardstick prints it.
    pub name: String,
    /// The size of the message; 0 where none matters.
    pub bytes: u64,
    /// The unit.
    pub unit: String,
    /// Which is better, a lower or a higher value.
    pub better: Better,
    /// The median of each library's values.
    pub medians: BTreeMap<String, f64>,
    /// The values of each library, a round each.
    pub values: BTreeMap<String, Vec<f64>>,
}

/// A yardstick that gave no value on a library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The library.
    pub library: String,
    /// What is missing.
    pub what: String,
    /// Why.
    pub reason: String,
}

/// One line that a yardstick printed.
#[derive(Debug, PartialEq)]
pub enum Line<'text> {
    /// A value.
    Result {
        /// Which.
        name: &'text str,
        /// The size of the message.
        bytes: u64,
        /// The value.
        value: f64,
        /// Its unit.
        unit: &'text str,
    },
    /// Why a value is missing.
    Note {
        /// Which.
        name: &'text str,
        /// Why.
        text: &'text str,
    },
}

/// The results and notes in a program's output; other lines are a library's own talk.
///
/// # Errors
/// A result that cannot be read, or whose name has no meaning.
pub fn parse(output: &str) -> anyhow::Result<Vec<Line<'_>>> {
    let mut found = Vec::new();
    for line in output.lines() {
        if let Some(rest) = line.strip_prefix("result ") {
            let fields: Vec<&str> = rest.split_whitespace().collect();
            let [name, bytes, value, unit] = fields[..] else { bail!("unreadable line: {line}") };
            let (Ok(bytes), Ok(value)) = (bytes.parse(), value.parse::<f64>()) else {
                bail!("unreadable line: {line}")
            };
            if !value.is_finite() || measure(name).is_none() {
                bail!("a value without meaning: {line}");
            }
            found.push(Line::Result { name, bytes, value, unit });
        } else if let Some((name, text)) = line.strip_prefix("note ").and_then(|rest| rest.split_once(' ')) {
            found.push(Line::Note { name, text });
        }
    }
    Ok(found)
}

impl Report {
    /// A run that has no values yet.
    pub fn new(command: String, rounds: u32, milliseconds: u32, libraries: Vec<Participant>) -> Report {
        Report {
            form: FORM,
            command,
            machine: super::machine::in_words(),
            date: super::machine::today(),
            rounds,
            milliseconds,
            libraries,
            rows: Vec::new(),
            missing: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Files one value.
    pub fn add(&mut self, library: &str, name: &str, bytes: u64, value: f64, unit: &str) {
        let known = self.rows.iter().position(|row| row.name == name && row.bytes == bytes);
        let index = known.unwrap_or_else(|| {
            self.rows.push(Row {
                name: name.to_owned(),
                bytes,
                unit: unit.to_owned(),
                better: measure(name).map_or(Better::Less, |measure| measure.better),
                medians: BTreeMap::new(),
                values: BTreeMap::new(),
            });
            self.rows.len() - 1
        });
        let row = &mut self.rows[index];
        let values = row.values.entry(library.to_owned()).or_default();
        values.push(value);
        row.medians.insert(library.to_owned(), median(values));
    }

    /// Files what failed, once.
    pub fn miss(&mut self, library: &str, what: &str, reason: &str) {
        file(&mut self.missing, library, what, reason);
    }

    /// Files what a yardstick left out, once.
    pub fn note(&mut self, library: &str, what: &str, reason: &str) {
        file(&mut self.notes, library, what, reason);
    }

    /// The least of what there is of a value so far.
    pub fn least(&self, library: &str, name: &str) -> Option<f64> {
        let row = self.rows.iter().find(|row| row.name == name)?;
        row.values.get(library)?.iter().copied().min_by(f64::total_cmp)
    }

    /// Reads a file that [`Report::write`] wrote.
    ///
    /// # Errors
    /// It cannot be read, or is none of these.
    pub fn read(path: &Path) -> anyhow::Result<Report> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let report: Report =
            serde_json::from_str(&text).with_context(|| format!("{}: no result file", path.display()))?;
        if report.form != FORM {
            bail!(
                "{}: a result file of form {}, this program knows form {FORM}",
                path.display(),
                report.form
            );
        }
        Ok(report)
    }

    /// Writes everything to a file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(path, format!("{text}\n")).with_context(|| path.display().to_string())
    }

    /// The rows of this value, by size.
    pub fn rows_of<'report>(&'report self, name: &str) -> Vec<&'report Row> {
        let mut rows: Vec<&Row> = self.rows.iter().filter(|row| row.name == name).collect();
        rows.sort_by_key(|row| row.bytes);
        rows
    }

    /// A table for a terminal: medians, and ours over the best peer's.
    pub fn table(&self) -> String {
        let names: Vec<&str> = self.libraries.iter().map(|library| library.name.as_str()).collect();
        let mut lines = vec![vec!["".to_owned(), "unit".to_owned()]];
        lines[0].extend(names.iter().map(|name| (*name).to_owned()));
        lines[0].push("ours / best".to_owned());
        for row in self.rows.iter().filter(|row| !row.medians.contains_key(MACHINE)) {
            let mut line = vec![row.label(), row.unit.clone()];
            line.extend(
                names.iter().map(|name| row.medians.get(*name).map_or(String::new(), |value| number(*value))),
            );
            line.push(row.ratio().map_or(String::new(), |ratio| format!("{ratio:.2}")));
            lines.push(line);
        }
        let mut text = aligned(&lines);
        for row in self.rows.iter().filter(|row| row.medians.contains_key(MACHINE)) {
            let _ = writeln!(text, "{}: {} {}", row.label(), number(row.medians[MACHINE]), row.unit);
        }
        text
    }

    /// What has become slower and faster since `before`, by the ratio of medians; for each library in both.
    pub fn compared_to(&self, before: &Report) -> String {
        let mut changes = Vec::new();
        let mut count = 0;
        for row in &self.rows {
            let Some(old) = before.rows.iter().find(|old| old.name == row.name && old.bytes == row.bytes)
            else {
                continue;
            };
            let (Some(factor), Some(now), Some(then)) =
                (row.worse_by(old, OURS), row.medians.get(OURS), old.medians.get(OURS))
            else {
                continue;
            };
            count += 1;
            if factor < NOTABLE && factor > 1.0 / NOTABLE {
                continue;
            }
            // How the others fared tells whether it was the machine.
            let others: Vec<f64> = row
                .medians
                .keys()
                .filter(|library| *library != OURS)
                .filter_map(|library| row.worse_by(old, library))
                .collect();
            let apart = apart(&row.values[OURS], &old.values[OURS]);
            changes.push((
                factor,
                vec![
                    row.label(),
                    number(*then),
                    number(*now),
                    row.unit.clone(),
                    format!("{factor:.2}"),
                    if others.is_empty() { String::new() } else { format!("{:.2}", median(&others)) },
                    if apart { String::new() } else { "within the spread".to_owned() },
                ],
            ));
        }
        changes.sort_by(|left, right| right.0.total_cmp(&left.0));
        let heading =
            |title: &str| ["", "before", "now", "unit", title, "others", ""].map(str::to_owned).to_vec();
        let mut text = format!("Compared with {} ({} values in both):\n", before.date, count);
        for (title, worse) in [("worse by", true), ("better, at", false)] {
            let mut lines = vec![heading(title)];
            lines.extend(
                changes.iter().filter(|(factor, _)| (*factor > 1.0) == worse).map(|(_, line)| line.clone()),
            );
            if lines.len() > 1 {
                text += &aligned(&lines);
            }
        }
        if changes.is_empty() {
            let _ = writeln!(text, "no median has changed by more than a factor of {NOTABLE}");
        }
        text
    }
}

impl Row {
    /// The best of the other libraries' medians.
    pub fn best_peer(&self) -> Option<(&str, f64)> {
        let peers = self.medians.iter().filter(|(library, _)| *library != OURS && *library != MACHINE);
        let best = match self.better {
            Better::Less => peers.min_by(|left, right| left.1.total_cmp(right.1)),
            Better::More => peers.max_by(|left, right| left.1.total_cmp(right.1)),
        };
        best.map(|(library, value)| (library.as_str(), *value))
    }

    /// Ours over the best peer's.
    pub fn ratio(&self) -> Option<f64> {
        let (_, best) = self.best_peer()?;
        let ratio = self.medians.get(OURS)? / best;
        ratio.is_finite().then_some(ratio)
    }

    /// How many times worse ours is than the best peer's; below 1 it is better.
    pub fn behind(&self) -> Option<f64> {
        self.ratio().map(|ratio| if self.better == Better::More { 1.0 / ratio } else { ratio })
    }

    /// How many times worse this library's median is than in `old`.
    fn worse_by(&self, old: &Row, library: &str) -> Option<f64> {
        let factor = self.medians.get(library)? / old.medians.get(library)?;
        let factor = if self.better == Better::More { 1.0 / factor } else { factor };
        factor.is_finite().then_some(factor)
    }

    /// What it is, with the size.
    pub fn label(&self) -> String {
        let title = measure(&self.name).map_or(self.name.as_str(), |measure| measure.title);
        if self.bytes == 0 && !self.name.starts_with("half-round-trip") {
            title.to_owned()
        } else {
            format!("{title}, {}", size(self.bytes))
        }
    }
}

fn file(list: &mut Vec<Missing>, library: &str, what: &str, reason: &str) {
    if !list.iter().any(|missing| missing.library == library && missing.what == what) {
        let (library, what, reason) = (library.to_owned(), what.to_owned(), reason.to_owned());
        list.push(Missing { library, what, reason });
    }
}

/// True when no value of the one lies among those of the other.
fn apart(left: &[f64], right: &[f64]) -> bool {
    let range = |values: &[f64]| {
        values
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| (low.min(value), high.max(value)))
    };
    let (left, right) = (range(left), range(right));
    left.1 < right.0 || right.1 < left.0
}

/// The middle value; of an even number, the mean of the two in the middle.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[count / 2],
        count => f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]),
    }
}

/// Three significant digits, and never an exponent.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 1000.0 {
        let digits = format!("{magnitude:.0}");
        let mut text = String::from(if value < 0.0 { "-" } else { "" });
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        return text;
    }
    let decimals = match magnitude {
        0.0 => 0,
        magnitude if magnitude >= 100.0 => 0,
        magnitude if magnitude >= 10.0 => 1,
        magnitude if magnitude >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// As "64 KiB", "100 KB", "8 B".
pub fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1_000_000 && bytes.is_multiple_of(1_000_000) => format!("{} MB", bytes / 1_000_000),
        bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes if bytes >= 1000 && bytes.is_multiple_of(1000) => format!("{} KB", bytes / 1000),
        bytes => format!("{bytes} B"),
    }
}

/// The lines with columns of one width, the first to the left and the others to the right.
fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            lines
                .iter()
                .filter_map(|line| line.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for line in lines {
        let mut row = String::new();
        for (column, cell) in line.iter().enumerate() {
            let width = widths[column];
            let _ = if column == 0 { write!(row, "{cell:<width$}") } else { write!(row, "  {cell:>width$}") };
        }
        text += row.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(values: &[(&str, &str, u64, &[f64])]) -> Report {
        let mut report = Report::new("parnass bench".into(), 3, 50, Vec::new());
        for (library, name, bytes, found) in values {
            if !report.libraries.iter().any(|known| known.name == *library) {
                let name = (*library).to_owned();
                report.libraries.push(Participant { name, version: "1.0".into(), settings: "none".into() });
            }
            for value in *found {
                report.add(library, name, *bytes, *value, "us");
            }
        }
        report
    }

    #[test]
    fn output_is_read_and_other_talk_is_not() {
        let lines = parse("warning: x\nresult bandwidth 65536 4.5 GB/s\nnote bandwidth too slow\n").unwrap();
        assert_eq!(
            lines,
            [
                Line::Result { name: "bandwidth", bytes: 65536, value: 4.5, unit: "GB/s" },
                Line::Note { name: "bandwidth", text: "too slow" }
            ]
        );
        for wrong in ["result bandwidth 1 nan GB/s", "result unheard-of 1 1 us", "result bandwidth 1 1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ours_is_compared_with_the_best_peer_whichever_way_is_better() {
        let report = report(&[
            ("parnass", "half-round-trip", 8, &[2.0, 4.0, 3.0]),
            ("a", "half-round-trip", 8, &[6.0, 5.0, 7.0]),
            ("b", "half-round-trip", 8, &[9.0]),
            ("parnass", "bandwidth", 65536, &[6.0]),
            ("a", "bandwidth", 65536, &[2.0]),
            ("b", "bandwidth", 65536, &[3.0]),
        ]);
        assert_eq!(report.rows[0].best_peer(), Some(("a", 6.0)));
        assert_eq!((report.rows[0].ratio(), report.rows[0].behind()), (Some(0.5), Some(0.5)));
        assert_eq!((report.rows[1].ratio(), report.rows[1].behind()), (Some(2.0), Some(0.5)));
        let table = report.table();
        assert!(table.contains("half round trip, the buffer written anew, 8 B"), "{table}");
        assert!(table.lines().next().unwrap().ends_with("ours / best"), "{table}");
    }

    #[test]
    fn what_changed_between_two_runs_is_told() {
        let before = report(&[
            ("parnass", "half-round-trip", 8, &[1.0, 1.1, 1.2]),
            ("a", "half-round-trip", 8, &[5.0]),
            ("parnass", "bandwidth", 65536, &[2.0, 2.1, 2.2]),
            ("parnass", "match-none", 8, &[1.0]),
        ]);
        let now = report(&[
            ("parnass", "half-round-trip", 8, &[2.0, 2.2, 2.4]),
            ("a", "half-round-trip", 8, &[5.0]),
            ("parnass", "bandwidth", 65536, &[2.15, 4.2, 4.3]),
            ("parnass", "match-none", 8, &[1.01]),
        ]);
        let text = now.compared_to(&before);
        let worse: Vec<&str> = text.lines().filter(|line| line.starts_with("half round trip")).collect();
        assert_eq!(worse.len(), 1, "{text}");
        assert!(worse[0].contains("2.00") && worse[0].ends_with("1.00"), "{text}");
        let better = text.lines().find(|line| line.starts_with("bandwidth")).unwrap();
        assert!(better.contains("0.50") && better.ends_with("within the spread"), "{text}");
        assert!(now.compared_to(&now).contains("no median has changed"));
    }

    #[test]
    fn a_file_comes_back_as_it_was() {
        let report = report(&[("parnass", "half-round-trip", 8, &[1.5, 2.5])]);
        let path = std::env::temp_dir().join(format!("parnass-results-{}.json", std::process::id()));
        report.write(&path).unwrap();
        let again = Report::read(&path).unwrap();
        std::fs::write(&path, "{}").unwrap();
        assert!(Report::read(&path).is_err());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(again.rows[0].values["parnass"], [1.5, 2.5]);
        assert_eq!(again.rows[0].medians["parnass"], 2.0);
    }

    #[test]
    fn numbers_and_sizes_are_short() {
        let shown: Vec<String> =
            [0.0, 0.1234, 1.234, 12.34, 123.4, 1234.5, 1_234_567.0].into_iter().map(number).collect();
        assert_eq!(shown, ["0", "0.123", "1.23", "12.3", "123", "1,234", "1,234,567"]);
        let shown: Vec<String> =
            [8, 1024, 65536, 100_000, 16_000_000, 64 << 20, 20].into_iter().map(size).collect();
        assert_eq!(shown, ["8 B", "1 KiB", "64 KiB", "100 KB", "16 MB", "64 MiB", "20 B"]);
    }
}
