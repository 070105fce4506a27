//! What passed, failed and was skipped, said as it happens and again at the end.

use std::fmt::Write as _;
use std::time::Duration;

/// How a test ended; the text says why.
pub enum Verdict {
    Passed,
    Failed(String),
    Skipped(String),
}

/// The counts so far.
#[derive(Default)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
    failures: Vec<String>,
}

impl Tally {
    /// Counts and prints one test.
    pub fn add(&mut self, stage: &str, name: &str, elapsed: Duration, verdict: Verdict) {
        let seconds = elapsed.as_secs_f64();
        match verdict {
            Verdict::Passed => {
                self.passed += 1;
                println!("  ok    {stage}: {name} ({seconds:.1} s)");
            }
            Verdict::Skipped(reason) => {
                self.skipped += 1;
                println!("  skip  {stage}: {name}: {reason}");
            }
            Verdict::Failed(reason) => {
                self.failed += 1;
                self.failures.push(format!("{stage}: {name}"));
                println!("  FAIL  {stage}: {name} ({seconds:.1} s)");
                for line in reason.lines() {
                    println!("        {line}");
                }
            }
        }
    }

    /// Counts tests that another program ran; a failure among them is named by `failures`.
    pub fn add_many(&mut self, stage: &str, passed: u64, skipped: u64, failures: &[String]) {
        self.passed += passed;
        self.skipped += skipped;
        self.failed += failures.len() as u64;
        self.failures.extend(failures.iter().map(|failure| format!("{stage}: {failure}")));
        println!("  {stage}: {passed} passed, {} failed, {skipped} skipped", failures.len());
    }

    /// Prints what failed and, alone on the last line, the counts.
    pub fn finish(&self) {
        if !self.failures.is_empty() {
            println!("\nFailed:");
            for failure in &self.failures {
                println!("  {failure}");
            }
        }
        println!();
        let skipped = if self.skipped > 0 { format!(", {} skipped", self.skipped) } else { String::new() };
        println!("{} passed, {} failed{skipped}", self.passed, self.failed);
    }
}

/// Beginning and end of a stream, for a report.
pub fn excerpt(title: &str, text: &str) -> String {
    const LINES: usize = 40;
    let lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return String::new();
    }
    let mut shown = format!("--- {title}\n");
    let cut = |line: &str| line.chars().take(300).collect::<String>();
    for (index, line) in lines.iter().enumerate() {
        if lines.len() > 2 * LINES && index == LINES {
            let _ = writeln!(shown, "... {} lines ...", lines.len() - 2 * LINES);
        }
        if lines.len() <= 2 * LINES || index < LINES || index >= lines.len() - LINES {
            let _ = writeln!(shown, "{}", cut(line));
        }
    }
    shown
}
