//! The stages that cargo runs: format, lints, unit and property tests, loom models.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::bail;
use serde::Deserialize;

use super::runner::{self, Outcome};
use super::table::Places;
use super::tally::{Tally, Verdict};

/// Crates whose loom models are run: `base` holds the lock-free structures, everything above is built of them.
const LOOM_CRATES: &[&str] = &["parnass-base"];

/// The test programs of `mpi` that run under the thread sanitizer.
const SANITIZED_TESTS: &[&str] = &["threads", "storm"];
const SANITIZED_TARGET: &str = "x86_64-unknown-linux-gnu";

/// What cargo itself may take, and what one test program may: they end in seconds, but not under everything.
const BUILD_LIMIT: Duration = Duration::from_secs(25 * 60);
const PROGRAM_LIMIT: Duration = Duration::from_secs(5 * 60);

fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).current_dir(root);
    command
}

/// Runs a command that counts as one test.
fn single(places: &Places, tally: &mut Tally, stage: &str, command: Command) -> anyhow::Result<()> {
    let outcome = runner::run(command, b"", BUILD_LIMIT, &places.scratch)?;
    let verdict =
        if outcome.status.success() { Verdict::Passed } else { Verdict::Failed(trouble(stage, &outcome)) };
    tally.add(stage, "workspace", outcome.elapsed, verdict);
    Ok(())
}

pub fn format(places: &Places, tally: &mut Tally) -> anyhow::Result<()> {
    single(places, tally, "fmt", cargo(&places.root, &["fmt", "--all", "--check"]))
}

pub fn clippy(places: &Places, tally: &mut Tally) -> anyhow::Result<()> {
    let arguments = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    single(places, tally, "clippy", cargo(&places.root, &arguments))
}

/// Unit, property and documentation tests of all crates.
pub fn unit(places: &Places, tally: &mut Tally) -> anyhow::Result<()> {
    for program in built(places, cargo(&places.root, &["test", "--workspace"]))? {
        program.run(places, tally, "unit", &[])?;
    }
    let documentation = cargo(&places.root, &["test", "--workspace", "--no-fail-fast", "--doc"]);
    let outcome = runner::run(documentation, b"", BUILD_LIMIT, &places.scratch)?;
    count(tally, "unit", "documentation", &outcome);
    Ok(())
}

/// The models of lock-free structures, with loom in the place of the machine's atomics.
pub fn loom(places: &Places, tally: &mut Tally) -> anyhow::Result<()> {
    let mut command = cargo(&places.root, &["test", "--release", "--target-dir", "target/loom", "--lib"]);
    for name in LOOM_CRATES {
        command.args(["--package", name]);
    }
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    command.env("RUSTFLAGS", format!("{flags} --cfg loom"));
    for program in built(places, command)? {
        // Only the models (modules of that name): everything else has run already. Three context switches more
        // than the thread's own find what more would, and end in seconds.
        program.run(places, tally, "loom", &["::models::"])?;
    }
    Ok(())
}

/// Tests of processes with one thread and with several, under the thread sanitizer. With them the standard library is compiled
/// anew, which takes minutes and a nightly toolchain; that is fetched if it can be.
pub fn tsan(places: &Places, tally: &mut Tally) -> anyhow::Result<()> {
    if let Some(reason) = without_nightly(places)? {
        tally.add("tsan", "threads", Duration::ZERO, Verdict::Skipped(reason));
        return Ok(());
    }
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo", "test", "-Zbuild-std", "--target", SANITIZED_TARGET]);
    command.args(["--target-dir", "target/tsan", "--package", "parnass-mpi"]).current_dir(&places.root);
    for test in SANITIZED_TESTS {
        command.args(["--test", test]);
    }
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    command.env("RUSTFLAGS", format!("{flags} -Zsanitizer=thread --cfg tsan"));
    for program in built(places, command)? {
        program.run(places, tally, "tsan", &["--test-threads", "1"])?;
    }
    Ok(())
}

/// Why there is no nightly toolchain with the sources of the standard library, if so.
fn without_nightly(places: &Places) -> anyhow::Result<Option<String>> {
    if cfg!(not(all(target_arch = "x86_64", target_os = "linux"))) {
        return Ok(Some("the thread sanitizer is run on x86-64 only".to_owned()));
    }
    let rustup = |arguments: &[&str]| {
        let mut command = Command::new("rustup");
        command.args(arguments);
        runner::run(command, b"", BUILD_LIMIT, &places.scratch)
    };
    let has_rustup =
        Command::new("rustup").arg("--version").output().is_ok_and(|output| output.status.success());
    if !has_rustup {
        return Ok(Some("there is no rustup, so no nightly toolchain can be had".to_owned()));
    }
    if rustup(&["component", "add", "rust-src", "--toolchain", "nightly"])?.status.success() {
        return Ok(None);
    }
    let installed =
        rustup(&["toolchain", "install", "nightly", "--profile", "minimal", "--component", "rust-src"])?;
    Ok((!installed.status.success()).then(|| {
        let last = installed.stderr.lines().last().unwrap_or_default().to_owned();
        format!("rustup cannot install a nightly toolchain with rust-src: {last}")
    }))
}

/// A test program that cargo has built, and the package it belongs to.
struct TestProgram {
    name: String,
    path: PathBuf,
    package: PathBuf,
}

/// Builds what `cargo test` would run and says what that is.
///
/// The programs are run one by one, not by cargo: each has its limit, and one that hangs is named.
fn built(places: &Places, mut command: Command) -> anyhow::Result<Vec<TestProgram>> {
    command.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    let outcome = runner::run(command, b"", BUILD_LIMIT, &places.scratch)?;
    if !outcome.status.success() {
        bail!("the tests were not built\n{}", super::tally::excerpt("stderr", &outcome.stderr));
    }
    let mut programs = Vec::new();
    for line in outcome.stdout.lines() {
        let message: Message = serde_json::from_str(line)?;
        if let (Some(target), Some(path), Some(manifest)) =
            (message.target, message.executable, message.manifest_path)
            && message.profile.is_some_and(|profile| profile.test)
        {
            let package = manifest.parent().map(Path::to_path_buf).unwrap_or_default();
            let crate_name = package.file_name().unwrap_or_default().to_string_lossy();
            programs.push(TestProgram { name: format!("{crate_name}/{}", target.name), path, package });
        }
    }
    if programs.is_empty() {
        bail!("cargo named no test program");
    }
    Ok(programs)
}

/// The parts of cargo's messages that are used here.
#[derive(Deserialize)]
struct Message {
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

impl TestProgram {
    fn run(&self, places: &Places, tally: &mut Tally, stage: &str, arguments: &[&str]) -> anyhow::Result<()> {
        let mut command = Command::new(&self.path);
        command.args(arguments).current_dir(&self.package).env("CARGO_MANIFEST_DIR", &self.package);
        command.env("LOOM_MAX_PREEMPTIONS", "3");
        let outcome = runner::run(command, b"", PROGRAM_LIMIT, &places.scratch)?;
        count(tally, stage, &self.name, &outcome);
        Ok(())
    }
}

/// Counts what a test program said.
fn count(tally: &mut Tally, stage: &str, name: &str, outcome: &Outcome) {
    let counts = Counts::read(&outcome.stdout);
    let mut failures: Vec<String> =
        counts.failures.iter().map(|failure| format!("{name}: {failure}")).collect();
    if !outcome.status.success() && failures.is_empty() {
        failures.push(format!("{name} did not run to its end: {}", outcome.status));
    }
    if !outcome.leftovers.is_empty() {
        failures.push(format!("{name} left behind {}", outcome.leftovers.join(", ")));
    }
    if !failures.is_empty() {
        println!("{}", trouble(name, outcome));
    }
    let seconds = outcome.elapsed.as_secs_f64();
    tally.add_many(&format!("{stage}: {name} ({seconds:.1} s)"), counts.passed, counts.ignored, &failures);
}

/// What to show of a command that failed.
fn trouble(name: &str, outcome: &Outcome) -> String {
    let mut text = match outcome.timed_out {
        true => format!("{name} was ended after {:.0} s: it hung\n", outcome.elapsed.as_secs_f64()),
        false => format!("{name}: {}\n", outcome.status),
    };
    // A test that runs for over a minute is named on standard output.
    text += &super::tally::excerpt("stdout", &failing_output(&outcome.stdout));
    text += &super::tally::excerpt("stderr", &outcome.stderr);
    text
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

/// The part of a test program's output that shows the failures.
fn failing_output(text: &str) -> String {
    let mut inside = false;
    let mut shown = Vec::new();
    for line in text.lines() {
        if line == "failures:" {
            inside = true;
        } else if line.starts_with("test result:") {
            inside = false;
        }
        if inside || line.ends_with("... FAILED") || line.contains("has been running for") {
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
