//! The stages that cargo runs: format, lints, unit and property tests, loom models.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::tally::{Tally, Verdict};

/// Crates whose loom models are run: `base` holds the lock-free structures, everything above is built of them.
const LOOM_CRATES: &[&str] = &["parnass-base"];

fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).current_dir(root);
    command
}

/// Runs a command that counts as one test.
fn single(tally: &mut Tally, stage: &str, mut command: Command) -> anyhow::Result<()> {
    let start = Instant::now();
    let output = command.output()?;
    let verdict = if output.status.success() {
        Verdict::Passed
    } else {
        let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        Verdict::Failed(super::tally::excerpt(stage, &String::from_utf8_lossy(&text)))
    };
    tally.add(stage, "workspace", start.elapsed(), verdict);
    Ok(())
}

pub fn format(root: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    single(tally, "fmt", cargo(root, &["fmt", "--all", "--check"]))
}

pub fn clippy(root: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    single(
        tally,
        "clippy",
        cargo(root, &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]),
    )
}

/// Unit, property and documentation tests of all crates.
pub fn unit(root: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    counted(tally, "unit", cargo(root, &["test", "--workspace", "--no-fail-fast"]))
}

/// The models of lock-free structures, with loom in the place of the machine's atomics.
pub fn loom(root: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let mut command = cargo(root, &["test", "--no-fail-fast", "--release", "--target-dir", "target/loom"]);
    for name in LOOM_CRATES {
        command.args(["--package", name]);
    }
    // Only the models (modules of that name): everything else has run already. Three context switches more
    // than the thread's own find what more would, and end in seconds.
    command.args(["--lib", "--", "::models::"]);
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    command.env("RUSTFLAGS", format!("{flags} --cfg loom")).env("LOOM_MAX_PREEMPTIONS", "3");
    counted(tally, "loom", command)
}

/// Runs `cargo test` and counts what its test programs say.
fn counted(tally: &mut Tally, stage: &str, mut command: Command) -> anyhow::Result<()> {
    let start = Instant::now();
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let counts = Counts::read(&text);
    let mut failures = counts.failures;
    if !output.status.success() && failures.is_empty() {
        failures.push(format!("{stage} did not run to its end"));
        println!("{}", super::tally::excerpt("stderr", &String::from_utf8_lossy(&output.stderr)));
    }
    if output.status.success() && counts.passed == 0 {
        failures.push(format!("{stage} ran no test at all"));
    }
    if !failures.is_empty() {
        println!("{}", super::tally::excerpt(stage, &failing_output(&text)));
    }
    tally.add_many(stage, counts.passed, counts.ignored, &failures);
    println!("  ({:.0} s)", start.elapsed().as_secs_f64());
    Ok(())
}

#[derive(Default)]
struct Counts {
    passed: u64,
    ignored: u64,
    failures: Vec<String>,
}

impl Counts {
    /// Adds up the lines `test result: ok. 12 passed; 0 failed; 1 ignored; ...` and names what failed.
    fn read(text: &str) -> Self {
        let mut counts = Self::default();
        for line in text.lines() {
            if let Some(result) = line.strip_prefix("test result:") {
                let number = |word: &str| {
                    let words: Vec<&str> =
                        result.split([' ', ';', '.']).filter(|word| !word.is_empty()).collect();
                    let place = words.iter().position(|&found| found == word)?;
                    words.get(place.checked_sub(1)?)?.parse::<u64>().ok()
                };
                counts.passed += number("passed").unwrap_or(0);
                counts.ignored += number("ignored").unwrap_or(0);
            } else if let Some(test) = line.strip_prefix("test ")
                && let Some(name) = test.strip_suffix(" ... FAILED")
            {
                counts.failures.push(name.to_owned());
            }
        }
        counts
    }
}

/// The part of cargo's output that shows the failures.
fn failing_output(text: &str) -> String {
    let mut inside = false;
    let mut shown = Vec::new();
    for line in text.lines() {
        if line == "failures:" {
            inside = true;
        } else if line.starts_with("test result:") {
            inside = false;
        }
        if inside || line.ends_with("... FAILED") {
            shown.push(line);
        }
    }
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_add_up() {
        let text = "test a ... ok\ntest b::c ... FAILED\n\
                    test result: FAILED. 1 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
                    test result: ok. 40 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        let counts = Counts::read(text);
        assert_eq!((counts.passed, counts.ignored), (41, 2));
        assert_eq!(counts.failures, ["b::c"]);
    }
}
