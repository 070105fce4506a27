//! `mpiexec --stats`: what each rank did, as a table for people and as JSON for programs.

use std::fmt::Write as _;

use parnass_bootstrap::wire::{Decoder, Encoder};
use parnass_counters::{self as counters, COUNTERS, Class, Counter, Counters, Home};

/// Rows of the table at most.
const ROWS: usize = 64;

/// What is known of one rank at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Processor time of its processes, those that they have waited for included.
    pub cpu_us: u64,
    /// Most resident memory of one process.
    pub peak_kib: u64,
    /// What it counted, in the order of the table; empty where it never called MPI.
    pub counted: Vec<u64>,
}

impl Account {
    /// Adds what a process has counted that ran as this rank.
    pub fn add(&mut self, counters: &Counters) {
        self.counted.resize(COUNTERS.len(), 0);
        for (sum, row) in self.counted.iter_mut().zip(COUNTERS) {
            let value = counters.read(row.home);
            *sum = if row.class == Class::Highwatermark { value.max(*sum) } else { value.wrapping_add(*sum) };
        }
    }

    fn value(&self, row: usize) -> u64 {
        self.counted.get(row).copied().unwrap_or(0)
    }

    fn of(&self, home: Home) -> u64 {
        COUNTERS.iter().position(|row| row.home == home).map_or(0, |row| self.value(row))
    }

    fn sum_of(&self, wanted: impl Fn(&Counter) -> bool) -> u64 {
        (0..COUNTERS.len()).filter(|row| wanted(&COUNTERS[*row])).map(|row| self.value(row)).sum()
    }

    /// For the way from an agent.
    pub fn encode(&self, encoder: &mut Encoder) {
        let mut word = |value: u64| {
            encoder.raw(&value.to_le_bytes());
        };
        word(self.cpu_us);
        word(self.peak_kib);
        self.counted.iter().copied().for_each(word);
    }

    /// What [`Account::encode`] has made; `None` if it is none of this release.
    pub fn decode(decoder: &mut Decoder<'_>) -> Option<Account> {
        let mut words = decoder.rest().chunks_exact(8);
        let exact = words.remainder().is_empty();
        let mut word =
            || words.next().map(|bytes| u64::from_le_bytes(bytes.try_into().expect("chunks of eight")));
        let (cpu_us, peak_kib) = (word()?, word()?);
        let counted: Vec<u64> = std::iter::from_fn(word).collect();
        let known = counted.is_empty() || counted.len() == COUNTERS.len();
        (exact && known).then_some(Account { cpu_us, peak_kib, counted })
    }
}

/// One rank in the table.
#[derive(Clone, Debug)]
pub struct Line {
    pub rank: u32,
    /// Empty where all are on one.
    pub host: String,
    /// How it ended, in words.
    pub end: String,
    /// Whether that is worth telling in the table.
    pub failed: bool,
    /// None where its host has not told.
    pub account: Option<Account>,
}

/// "0", "9999", "10.0 k", "3.2 M".
fn short(number: u64) -> String {
    scaled(number, 1000.0, ["", " k", " M", " G", " T"])
}

/// "512 B", "3.2 KiB".
fn bytes(number: u64) -> String {
    scaled(number, 1024.0, [" B", " KiB", " MiB", " GiB", " TiB"])
}

fn scaled(number: u64, step: f64, units: [&str; 5]) -> String {
    if number < 10_000 {
        return format!("{number}{}", units[0]);
    }
    let (mut value, mut unit) = (number as f64, 0);
    while value >= step * 0.9995 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    format!("{value:.1}{}", units[unit])
}

fn seconds(nanoseconds: u64) -> String {
    format!("{:.2} s", nanoseconds as f64 * 1e-9)
}

/// What stands in a column for one rank.
type Cell = fn(&Account) -> String;
/// What tells whether a column has anything to show.
type Weight = fn(&Account) -> u64;

/// Messages and bytes of one way.
macro_rules! way {
    ($heading:literal, $kind:ident, $($messages:ident / $bytes:ident),+) => {
        (
            $heading,
            (|account| {
                let messages = [$(account.of(Home::$kind(counters::$messages))),+].iter().sum();
                let sent = [$(account.of(Home::$kind(counters::$bytes))),+].iter().sum();
                format!("{} / {}", short(messages), bytes(sent))
            }) as Cell,
            (|account| [$(account.of(Home::$kind(counters::$messages))),+].iter().sum()) as Weight,
        )
    };
}

fn is_received(counter: &Counter, class: Class) -> bool {
    counter.class == class && counter.name.starts_with("received_")
}

fn is_collective(counter: &Counter) -> bool {
    counters::CATEGORIES[counter.category].name == "collectives"
}

fn columns() -> Vec<(&'static str, Cell, Weight)> {
    vec![
        way!("sent short", Stripe, SENT_SHORT_MESSAGES / SENT_SHORT_BYTES),
        way!("in chunks", Any, SENT_CHUNK_MESSAGES / SENT_CHUNK_BYTES),
        way!("in pipes", Any, SENT_PIPE_MESSAGES / SENT_PIPE_BYTES),
        way!("direct", Any, SENT_DIRECT_MESSAGES / SENT_DIRECT_BYTES),
        way!(
            "to other nodes",
            Any,
            SENT_STREAM_MESSAGES / SENT_STREAM_BYTES,
            SENT_ANNOUNCED_MESSAGES / SENT_ANNOUNCED_BYTES
        ),
        (
            "received",
            |account| {
                let messages = account.sum_of(|row| is_received(row, Class::Counter));
                let received = account.sum_of(|row| is_received(row, Class::Aggregate));
                format!("{} / {}", short(messages), bytes(received))
            },
            |account| account.sum_of(|row| is_received(row, Class::Counter)),
        ),
        (
            "unexpected at most",
            |account| short(account.of(Home::Locked(counters::UNEXPECTED_MOST))),
            |account| account.of(Home::Locked(counters::UNEXPECTED_MOST)),
        ),
        (
            "collectives",
            |account| short(account.sum_of(is_collective)),
            |account| account.sum_of(is_collective),
        ),
        (
            "network out / in",
            |account| {
                let of = |counter| account.of(Home::Any(counter));
                let back = of(counters::NETWORK_RECEIVED_BYTES) + of(counters::NETWORK_READ_BYTES);
                format!("{} / {}", bytes(of(counters::NETWORK_SENT_BYTES)), bytes(back))
            },
            |account| account.of(Home::Any(counters::NETWORK_CONNECTIONS)),
        ),
        (
            "strangers refused",
            |account| short(account.of(Home::Any(counters::NETWORK_REFUSED))),
            |account| account.of(Home::Any(counters::NETWORK_REFUSED)),
        ),
        (
            "waiting",
            |account| seconds(account.of(Home::Any(counters::TIME_WAITING))),
            |account| account.counted.len() as u64,
        ),
        (
            "asleep",
            |account| seconds(account.of(Home::Any(counters::TIME_ASLEEP))),
            |account| account.counted.len() as u64,
        ),
        (
            "crowds",
            |account| short(account.of(Home::Any(counters::CROWDS))),
            |account| account.of(Home::Any(counters::CROWDS)),
        ),
        ("CPU", |account| format!("{:.2} s", account.cpu_us as f64 * 1e-6), |_| 1),
        ("memory", |account| bytes(account.peak_kib << 10), |_| 1),
    ]
}

/// All ranks together.
fn total(lines: &[Line]) -> Account {
    let mut total = Account::default();
    for account in lines.iter().filter_map(|line| line.account.as_ref()) {
        total.cpu_us += account.cpu_us;
        total.peak_kib += account.peak_kib;
        if !account.counted.is_empty() {
            total.counted.resize(COUNTERS.len(), 0);
        }
        for ((sum, value), row) in total.counted.iter_mut().zip(&account.counted).zip(COUNTERS) {
            *sum = if row.class == Class::Highwatermark { *value.max(sum) } else { sum.wrapping_add(*value) };
        }
    }
    total
}

/// The table for people.
pub fn table(lines: &[Line]) -> String {
    let whole = total(lines);
    let columns: Vec<_> = columns().into_iter().filter(|(.., weight)| weight(&whole) > 0).collect();
    let several_hosts = lines.iter().any(|line| !line.host.is_empty());
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut heading = vec!["rank".to_owned()];
    if several_hosts {
        heading.push("host".to_owned());
    }
    heading.extend(columns.iter().map(|(heading, ..)| (*heading).to_owned()));
    rows.push(heading);
    for line in lines.iter().take(ROWS) {
        let mut row = vec![line.rank.to_string()];
        if several_hosts {
            row.push(line.host.clone());
        }
        match &line.account {
            Some(account) => row.extend(columns.iter().map(|(_, cell, _)| cell(account))),
            None => row.extend(columns.iter().map(|_| "?".to_owned())),
        }
        rows.push(row);
    }
    let mut last = vec!["all".to_owned()];
    if several_hosts {
        last.push(String::new());
    }
    last.extend(columns.iter().map(|(_, cell, _)| cell(&whole)));
    rows.push(last);
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::from("mpiexec: what the ranks did (messages / bytes)\n");
    for (number, row) in rows.iter().enumerate() {
        let mut shown = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(shown, "  {cell:>width$}");
        }
        let line =
            number.checked_sub(1).and_then(|place| lines.get(place)).filter(|_| number + 1 < rows.len());
        if let Some(line) = line.filter(|line| line.failed) {
            let _ = write!(shown, "  {}", line.end);
        }
        let _ = writeln!(text, "{}", shown.trim_end());
    }
    if lines.len() > ROWS {
        let _ = writeln!(
            text,
            "  {} more ranks are in \"all\"; --stats=FILE has each of them",
            lines.len() - ROWS
        );
    }
    text
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            control if control < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", control as u32);
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

fn object(account: &Account) -> String {
    let counters: Vec<String> = COUNTERS
        .iter()
        .zip(&account.counted)
        .filter(|(row, _)| row.class != Class::Level)
        .map(|(row, value)| match row.class {
            Class::Timer => format!("\"{}_seconds\": {:.9}", row.name, *value as f64 * 1e-9),
            _ => format!("\"{}\": {value}", row.name),
        })
        .collect();
    format!(
        "\"cpu_seconds\": {:.6}, \"peak_kib\": {}, \"counters\": {{{}}}",
        account.cpu_us as f64 * 1e-6,
        account.peak_kib,
        counters.join(", ")
    )
}

/// The same for programs, with every counter.
pub fn json(lines: &[Line]) -> String {
    let ranks: Vec<String> = lines
        .iter()
        .map(|line| {
            let account = match &line.account {
                Some(account) => object(account),
                None => "\"counters\": null".to_owned(),
            };
            let (host, end) = (quoted(&line.host), quoted(&line.end));
            format!("    {{\"rank\": {}, \"host\": {host}, \"end\": {end}, {account}}}", line.rank)
        })
        .collect();
    format!("{{\n  \"ranks\": [\n{}\n  ],\n  \"job\": {{{}}}\n}}\n", ranks.join(",\n"), object(&total(lines)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(rank: u32, short: u64, most: u64) -> Line {
        let mut account = Account { cpu_us: 1_500_000, peak_kib: 2048, counted: vec![0; COUNTERS.len()] };
        let row = |name: &str| COUNTERS.iter().position(|row| row.name == name).unwrap();
        account.counted[row("sent_short_messages")] = short;
        account.counted[row("sent_short_bytes")] = short * 1000;
        account.counted[row("unexpected_most")] = most;
        account.counted[row("time_waiting")] = 2_000_000_000;
        let end = if rank == 1 { "was killed by \"9\"" } else { "exited with code 0" };
        Line { rank, host: String::new(), end: end.to_owned(), failed: rank == 1, account: Some(account) }
    }

    #[test]
    fn the_table_has_a_row_for_each_rank_and_one_for_all() {
        let lines = [line(0, 20_000, 3), line(1, 5, 7), Line { account: None, ..line(2, 0, 0) }];
        let text = table(&lines);
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows.len(), 6, "{text}");
        assert!(rows[1].contains("sent short") && !rows[1].contains("in pipes"), "{text}");
        assert!(rows[2].contains("20.0 k / 19.1 MiB") && rows[2].contains("2.00 s"), "{text}");
        assert!(rows[3].ends_with("was killed by \"9\""), "{text}");
        assert!(rows[4].contains('?'), "{text}");
        assert!(
            rows[5].contains("20.0 k") && rows[5].contains(" 7 ") && rows[5].contains("3.00 s"),
            "{text}"
        );
    }

    #[test]
    fn the_json_has_every_counter() {
        let text = json(&[line(0, 2, 3), line(1, 5, 7)]);
        assert!(
            text.contains("\"sent_short_messages\": 7")
                && text.contains("\"time_waiting_seconds\": 4.000000000")
        );
        assert!(text.contains("was killed by \\\"9\\\""));
        for row in COUNTERS.iter().filter(|row| row.class != Class::Level) {
            assert!(text.contains(&format!("\"{}", row.name)), "{}", row.name);
        }
    }

    #[test]
    fn an_account_survives_the_way() {
        let account = line(0, 9, 9).account.unwrap();
        let mut encoder = Encoder::new();
        account.encode(&mut encoder);
        let bytes = encoder.finish();
        assert_eq!(Account::decode(&mut Decoder::new(&bytes)), Some(account));
        assert_eq!(Account::decode(&mut Decoder::new(&bytes[..bytes.len() - 1])), None);
        assert_eq!(Account::decode(&mut Decoder::new(&bytes[..24])), None);
        assert_eq!(Account::decode(&mut Decoder::new(&bytes[..16])).unwrap().counted, Vec::<u64>::new());
    }
}
