//! `parnass tune`: measures this machine, and writes down which values suit it.
//!
//! It starts itself under `mpiexec`, once per value and round, the values in turn, so that a change of the machine's speed
//! meets all of them. A value other than the default is chosen only where it is better in nearly every round.

pub mod rank;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use parnass_tunables::files::{self, Machine};
use parnass_tunables::{self as tunables, TABLE, Value};

use crate::prefix::Prefix;

/// The first argument of the ranks that it starts.
pub const RANK: &str = "tune-rank";
/// A value must be better than the default by this factor.
const CLEARLY: f64 = 0.95;

/// What is asked for.
#[derive(Debug)]
pub struct Request {
    pub output: Option<PathBuf>,
    pub dry_run: bool,
    /// Measurements of each value.
    pub rounds: usize,
}

/// How a value is measured.
struct Knob {
    /// Its position in the table.
    row: usize,
    candidates: &'static [u64],
    yardstick: &'static str,
    crowded: bool,
    /// Of values that are about as good, the least is taken: it costs others less.
    frugal: bool,
    /// What the cost is.
    cost: &'static str,
}

const KNOBS: &[Knob] = &[
    Knob {
        row: tunables::DIRECT_THRESHOLD,
        candidates: &[8 << 10, 16 << 10, 32 << 10, (64 << 10) + 1],
        yardstick: "exchange",
        crowded: false,
        frugal: false,
        cost: "half round trip of 4 KiB to 64 KiB, geometric mean",
    },
    Knob {
        row: tunables::SPINS,
        candidates: &[500, 2000, 8000, 32000],
        yardstick: "late",
        crowded: false,
        frugal: true,
        cost: "answer after 0 to 200 us of computation, time beyond it",
    },
    Knob {
        row: tunables::YIELDS,
        candidates: &[0, 1, 2, 4, 16],
        yardstick: "crowd",
        crowded: true,
        frugal: false,
        cost: "barrier, and exchange of neighbours, geometric mean",
    },
];

/// The figures of one value.
#[derive(Clone, Debug)]
struct Measured {
    value: u64,
    /// In microseconds, one per round.
    costs: Vec<f64>,
}

impl Measured {
    fn median(&self) -> f64 {
        let mut sorted = self.costs.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }
}

/// Measures, tells, and writes.
///
/// # Errors
/// A sentence that says what could not be done.
pub fn run(request: &Request) -> Result<(), String> {
    let programs = Programs::find()?;
    let processors = parnass_bootstrap::available_processors() as u32;
    let crowd = (4 * processors).clamp(8, 64);
    let mut values = Vec::new();
    for knob in KNOBS {
        let row = &TABLE[knob.row];
        if !knob.crowded && processors < 2 {
            println!("{}: not measured, since two ranks share the only processor", row.name);
            continue;
        }
        let ranks = if knob.crowded { crowd } else { 2 };
        let default = default_of(knob);
        let mut candidates: Vec<u64> = knob.candidates.to_vec();
        if !candidates.contains(&default) {
            candidates.push(default);
            candidates.sort_unstable();
        }
        let measured = measure(&programs, knob, ranks, &candidates, request.rounds)?;
        let chosen = choose(&measured, default, knob.frugal);
        show(knob, ranks, &measured, chosen, default);
        values.push((row.name, chosen.to_string()));
    }
    let text = files::tuned_text(&Machine::here(), &values);
    if request.dry_run {
        println!("nothing is written; the file would be:\n\n{text}");
        return Ok(());
    }
    let default_place = files::tuned_path(&files::environment());
    let path = request.output.clone().or_else(|| default_place.clone());
    let path = path.ok_or("neither XDG_CONFIG_HOME nor HOME says where to write; give --output FILE")?;
    write(&path, &text).map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    println!("written to {}", path.display());
    if default_place.is_none_or(|place| place != path) {
        println!("mpiexec uses it with {}={}", files::TUNED_VARIABLE, path.display());
    } else {
        println!(
            "mpiexec uses it from now on; parnass info --tunables shows it, and removing the file undoes it"
        );
    }
    Ok(())
}

fn default_of(knob: &Knob) -> u64 {
    match TABLE[knob.row].default {
        Value::Number(number) => number,
        _ => unreachable!("only numbers are measured, which a test checks"),
    }
}

/// What is run.
struct Programs {
    mpiexec: PathBuf,
    own: PathBuf,
}

impl Programs {
    fn find() -> Result<Programs, String> {
        let trouble = |error: std::io::Error| format!("the running program cannot be found: {error}");
        let own = std::env::current_exe().map_err(trouble)?;
        let mpiexec = Prefix::of_this_program().map_err(trouble)?.directory().join("bin/mpiexec");
        if !mpiexec.exists() {
            return Err(format!(
                "there is no {}; install with cargo xtask dist --prefix DIR",
                mpiexec.display()
            ));
        }
        Ok(Programs { mpiexec, own })
    }

    /// The cost of a value, in microseconds.
    fn cost(&self, knob: &Knob, ranks: u32, value: u64) -> Result<f64, String> {
        let mut command = Command::new(&self.mpiexec);
        command.args(["--timeout", "60", "-n", &ranks.to_string()]);
        command.args(["--tunable", &format!("{}={value}", TABLE[knob.row].name)]);
        command.arg(&self.own).args([RANK, knob.yardstick]);
        // What was measured before is not what is measured now.
        command.env(files::TUNED_VARIABLE, "").stdin(Stdio::null()).stderr(Stdio::inherit());
        let output = command.output().map_err(|error| format!("{}: {error}", self.mpiexec.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        match text.trim().parse() {
            Ok(cost) if output.status.success() && cost > 0.0 => Ok(cost),
            _ => {
                Err(format!("the job that measures {} has failed ({})", TABLE[knob.row].name, output.status))
            }
        }
    }
}

/// Every value once in each round.
fn measure(
    programs: &Programs,
    knob: &Knob,
    ranks: u32,
    candidates: &[u64],
    rounds: usize,
) -> Result<Vec<Measured>, String> {
    let mut measured: Vec<Measured> =
        candidates.iter().map(|&value| Measured { value, costs: Vec::new() }).collect();
    let live = std::io::stderr().is_terminal();
    for round in 0..rounds {
        for entry in &mut measured {
            if live {
                let name = TABLE[knob.row].name;
                eprint!("\r\x1b[K{name}: round {} of {rounds}, {}", round + 1, entry.value);
                let _ = std::io::stderr().flush();
            }
            entry.costs.push(programs.cost(knob, ranks, entry.value)?);
        }
    }
    if live {
        eprint!("\r\x1b[K");
    }
    Ok(measured)
}

/// The value to take: the default, unless another is clearly better in nearly every round.
fn choose(measured: &[Measured], default: u64, frugal: bool) -> u64 {
    let of_default = measured.iter().find(|entry| entry.value == default).expect("the default is measured");
    let rounds = of_default.costs.len();
    let wins = |entry: &Measured| {
        entry.costs.iter().zip(&of_default.costs).filter(|(cost, default)| cost < default).count()
    };
    let better = measured
        .iter()
        .filter(|entry| entry.median() < of_default.median() * CLEARLY && wins(entry) + 1 >= rounds.max(2))
        .min_by(|left, right| left.median().total_cmp(&right.median()));
    let best = better.unwrap_or(of_default);
    if !frugal {
        return best.value;
    }
    let good = measured.iter().filter(|entry| entry.median() * CLEARLY <= best.median());
    good.map(|entry| entry.value).min().unwrap_or(default)
}

fn show(knob: &Knob, ranks: u32, measured: &[Measured], chosen: u64, default: u64) {
    let row = &TABLE[knob.row];
    let rounds = measured[0].costs.len();
    println!("{} ({} ranks, {rounds} rounds; {})", row.name, ranks, knob.cost);
    let least = measured.iter().map(Measured::median).fold(f64::INFINITY, f64::min);
    for entry in measured {
        let mark = if entry.value == chosen { "->" } else { "" };
        let note = if entry.value == default { "default" } else { "" };
        let spread = |pick: fn(f64, f64) -> f64, start| entry.costs.iter().copied().fold(start, pick);
        println!(
            "  {mark:2} {:>10}  {:9.2} us  (from {:.2} to {:.2})  {:5.2}  {note}",
            row.show(&Value::Number(entry.value)),
            entry.median(),
            spread(f64::min, f64::INFINITY),
            spread(f64::max, 0.0),
            entry.median() / least,
        );
    }
    println!();
}

/// Whole or not at all.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory)?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, path).inspect_err(|_| drop(std::fs::remove_file(&beside)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_table_says_is_measured_is_measured() {
        let measured: Vec<&str> = KNOBS.iter().map(|knob| TABLE[knob.row].name).collect();
        let promised: Vec<&str> = TABLE.iter().filter(|row| row.measured).map(|row| row.name).collect();
        assert!(promised.iter().all(|name| measured.contains(name)), "{promised:?}");
        assert_eq!(promised.len(), measured.len());
        for knob in KNOBS {
            let row = &TABLE[knob.row];
            assert!(matches!(row.default, Value::Number(_)), "{}", row.name);
            assert!(knob.candidates.iter().all(|value| row.read(&value.to_string()).is_ok()), "{}", row.name);
        }
    }

    fn table(costs: &[(u64, [f64; 3])]) -> Vec<Measured> {
        costs.iter().map(|(value, costs)| Measured { value: *value, costs: costs.to_vec() }).collect()
    }

    #[test]
    fn the_default_stays_unless_another_is_clearly_better() {
        let close = table(&[(1, [9.8, 9.7, 9.9]), (2, [10.0, 10.0, 10.0])]);
        assert_eq!(choose(&close, 2, false), 2);
        let better = table(&[(1, [5.0, 6.0, 5.0]), (2, [10.0, 10.0, 10.0])]);
        assert_eq!(choose(&better, 2, false), 1);
        let unsteady = table(&[(1, [5.0, 12.0, 11.0]), (2, [10.0, 10.0, 10.0])]);
        assert_eq!(choose(&unsteady, 2, false), 2);
    }

    #[test]
    fn of_equals_the_frugal_takes_the_least() {
        let equal = table(&[(1, [20.0; 3]), (2, [10.1; 3]), (3, [10.0; 3]), (4, [10.0; 3])]);
        assert_eq!(choose(&equal, 3, true), 2);
    }
}
